(import_spec !name path: (_) @module)
(import_spec name: (_) @alias path: (_) @module)
