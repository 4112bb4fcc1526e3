(comment) @comment
(function_definition) @function
(struct_specifier name: (_) @defines body: (_)) @type
(union_specifier name: (_) @defines body: (_)) @type
(enum_specifier name: (_) @defines body: (_))
(preproc_def name: (_) @defines)
(preproc_function_def name: (_) @defines)
(call_expression function: [(identifier) (field_expression)] @call)
(type_identifier) @mention
(preproc_include) @import
