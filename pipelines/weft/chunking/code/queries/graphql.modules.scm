(definition) @module
