(comment) @comment
(block) @type
((block (identifier) @_locals (body (attribute (identifier) @defines))) (#eq? @_locals "locals"))
(function_call (identifier) @call)
((expression . (variable_expr (identifier) @_first) . (get_attr) @used)
 (#not-match? @_first "^(count|data|each|path|self|terraform)$"))
((expression . (variable_expr (identifier) @_first) . (get_attr) . (get_attr) @used) (#eq? @_first "data"))
