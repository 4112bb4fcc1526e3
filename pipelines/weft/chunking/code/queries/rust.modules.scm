(use_declaration argument: (_) @module)
(extern_crate_declaration name: (_) @module)
