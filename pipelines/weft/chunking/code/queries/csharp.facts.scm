(comment) @comment
[(method_declaration name: (_) @function @defines body: (_)) (constructor_declaration name: (_) @function @defines)
 (local_function_statement name: (_) @function @defines) (operator_declaration "operator" @function)]
(method_declaration name: (_) @defines !body)
[(class_declaration name: (_) @type @defines) (interface_declaration name: (_) @type @defines)
 (struct_declaration name: (_) @type @defines) (record_declaration name: (_) @type @defines)
 (enum_declaration name: (_) @type @defines)]
(field_declaration (variable_declaration (variable_declarator name: (_) @defines)))
(invocation_expression function: [(identifier) (member_access_expression)] @call)
(object_creation_expression type: (_) @call)
(base_list [(identifier) (qualified_name) (generic_name)] @extends)
(attribute name: (_) @reference)
[(variable_declaration type: [(identifier) (qualified_name) (generic_name)] @mention)
 (parameter type: [(identifier) (qualified_name) (generic_name)] @mention)]
(using_directive) @import
