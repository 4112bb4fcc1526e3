[(line_comment) (block_comment)] @comment
(function_item name: (_) @function @defines)
(macro_definition name: (_) @function @defines)
(function_signature_item name: (_) @defines)
[(struct_item name: (_) @type @defines) (union_item name: (_) @type @defines)
 (enum_item name: (_) @type @defines) (trait_item name: (_) @type @defines)]
(call_expression function: [(identifier) (scoped_identifier) (field_expression) (generic_function)] @call)
(macro_invocation macro: (_) @call)
(token_tree (identifier) @call . (token_tree))
(trait_item bounds: (trait_bounds [(type_identifier) (scoped_type_identifier) (generic_type)] @extends))
(impl_item trait: (_) @implements)
(attribute_item (attribute (identifier) @reference))
[(type_identifier) (scoped_type_identifier)] @mention
[(use_declaration) (extern_crate_declaration)] @import
