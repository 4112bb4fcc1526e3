[(comment) (block_comment)] @comment
(function_definition name: (_) @function @defines)
(function_declaration name: (_) @defines)
[(class_definition name: (_) @type @defines) (object_definition name: (_) @type @defines)
 (trait_definition name: (_) @type @defines) (enum_definition name: (_) @type @defines)]
(call_expression function: [(identifier) (field_expression) (generic_function)] @call)
(instance_expression [(type_identifier) (stable_type_identifier) (generic_type)] @call)
(extends_clause type: (_) @extends)
(annotation name: (_) @reference)
[(type_identifier) (stable_type_identifier)] @mention
(import_declaration) @import
