[(line_comment) (multiline_comment)] @comment
(function_declaration (simple_identifier) @function @defines)
[(class_declaration (type_identifier) @type @defines) (object_declaration (type_identifier) @type @defines)]
(call_expression . [(simple_identifier) (navigation_expression)] @call)
(delegation_specifier (constructor_invocation (user_type) @extends))
(delegation_specifier (user_type) @implements)
(annotation (user_type) @reference)
(user_type) @mention
(import_header) @import
