"""What people are shown of a store: status, beliefs, the graph; commands, the console and routes share it."""
