"""What git knows of a folder, asked without running anything that a repository configures: its files, its history."""
