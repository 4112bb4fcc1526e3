(comment) @comment
[(function_definition name: (_) @function @defines) (method_declaration name: (_) @function @defines body: (_))]
(method_declaration name: (_) @defines !body)
[(class_declaration name: (_) @type @defines) (interface_declaration name: (_) @type @defines)
 (trait_declaration name: (_) @type @defines) (enum_declaration name: (_) @type @defines)]
(function_call_expression function: [(name) (qualified_name)] @call)
(member_call_expression name: (name) @invoked)
(scoped_call_expression name: (name) @invoked)
(object_creation_expression [(name) (qualified_name)] @call)
(base_clause (_) @extends)
(class_interface_clause (_) @implements)
(use_declaration (_) @extends)
(attribute (_) @reference)
(named_type) @mention
(namespace_use_declaration) @import
