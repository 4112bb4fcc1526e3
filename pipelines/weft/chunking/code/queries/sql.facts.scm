[(comment) (marginalia)] @comment
(invocation (object_reference) @call)
(object_reference) @mention
