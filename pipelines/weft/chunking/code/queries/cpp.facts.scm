(class_specifier name: (_) @defines body: (_)) @type
(alias_declaration name: (_) @defines)
(call_expression function: [(qualified_identifier) (template_function)] @call)
(new_expression type: (_) @call)
(base_class_clause [(type_identifier) (qualified_identifier) (template_type)] @extends)
