(import_declaration) @module
