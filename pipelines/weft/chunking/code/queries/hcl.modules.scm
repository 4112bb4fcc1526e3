(block) @module
