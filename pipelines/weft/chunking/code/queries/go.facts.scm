(comment) @comment
(function_declaration) @function
(method_declaration) @function
(type_spec type: [(struct_type) (interface_type)]) @type
(call_expression function: [(identifier) (selector_expression)] @call)
(field_declaration !name type: (_) @extends)
(interface_type (type_elem [(type_identifier) (qualified_type)] @extends))
[(type_identifier) (qualified_type)] @mention
(import_spec) @import
