"""What git knows of a folder, read without running git: rules, tracked files, settings; and, with git, its history."""
