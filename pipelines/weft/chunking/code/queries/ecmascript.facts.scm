(comment) @comment
(function_declaration name: (identifier) @function @defines)
(generator_function_declaration name: (identifier) @function @defines)
(method_definition name: (_) @function @defines)
(variable_declarator name: (identifier) @function @defines value: [(arrow_function) (function_expression)])
(assignment_expression left: (member_expression) @function right: [(arrow_function) (function_expression)])
(class_declaration name: (_) @type @defines)
(call_expression function: [(identifier) (member_expression)] @call)
(new_expression constructor: [(identifier) (member_expression)] @call)
(decorator [(identifier) (member_expression)] @reference)
(decorator (call_expression function: [(identifier) (member_expression)] @reference))
(import_statement) @import
(export_statement source: (_)) @import
((variable_declarator value: (call_expression function: (identifier) @_require)) @import (#eq? @_require "require"))
