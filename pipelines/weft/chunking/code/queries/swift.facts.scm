[(comment) (multiline_comment)] @comment
(function_declaration name: (simple_identifier) @function @defines)
[(init_declaration "init" @function) (function_declaration "func" @function)]
[(class_declaration name: (_) @type @defines) (protocol_declaration name: (_) @type @defines)]
(protocol_function_declaration name: (simple_identifier) @defines)
(call_expression . [(simple_identifier) (navigation_expression)] @call)
(inheritance_specifier inherits_from: (_) @extends)
(attribute (user_type) @reference)
(user_type) @mention
(import_declaration) @import
