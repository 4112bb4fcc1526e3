(namespace_use_clause (qualified_name) @module alias: (_) @alias)
(namespace_use_clause !alias (qualified_name) @module)
(namespace_use_clause !alias (name) @module)
