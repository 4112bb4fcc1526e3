(command argument: (word) @module)
