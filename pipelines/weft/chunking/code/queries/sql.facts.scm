[(comment) (marginalia)] @comment
(create_function) @function
[(create_table) (create_view) (create_materialized_view) (create_type) (create_trigger)] @type
(invocation (object_reference) @call)
(object_reference) @mention
