(comment) @comment
(block) @type
(function_call (identifier) @call)
(expression (variable_expr)) @mention
