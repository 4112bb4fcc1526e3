"""What stands above every piece of a long table or of a block of code, told by lines or by tags."""
