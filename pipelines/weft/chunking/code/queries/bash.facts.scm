(comment) @comment
(function_definition name: (_) @function @defines)
(command name: (command_name (word) @call))
((command name: (command_name (word) @_source)) @import (#any-of? @_source "." "source"))
