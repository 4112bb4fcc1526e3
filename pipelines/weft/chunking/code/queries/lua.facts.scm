(comment) @comment
(function_declaration name: (_) @function @defines)
(assignment_statement (variable_list name: (_) @function @defines) (expression_list value: (function_definition)))
(function_call name: (_) @call)
((function_call name: (identifier) @_require) @import (#eq? @_require "require"))
