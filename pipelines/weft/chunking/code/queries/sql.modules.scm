(statement) @module
