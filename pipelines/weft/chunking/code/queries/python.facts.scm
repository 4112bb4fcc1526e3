(comment) @comment
(function_definition name: (identifier) @function @defines)
(class_definition name: (identifier) @type @defines)
(call function: [(identifier) (attribute)] @call)
(decorator [(identifier) (attribute)] @reference)
(decorator (call function: [(identifier) (attribute)] @reference))
(class_definition superclasses: (argument_list [(identifier) (attribute)] @extends))
(class_definition superclasses: (argument_list (subscript value: [(identifier) (attribute)] @extends)))
(type [(identifier) (attribute)] @mention)
[(import_statement) (import_from_statement)] @import
