(using_directive !name [(identifier) (qualified_name)] @module)
(using_directive name: (_) @alias [(qualified_name) (generic_name)] @module)
