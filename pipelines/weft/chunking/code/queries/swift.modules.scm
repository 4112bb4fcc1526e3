(import_declaration (identifier) @module)
