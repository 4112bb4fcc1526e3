[(line_comment) (block_comment)] @comment
(method_declaration name: (identifier) @function @defines body: (_))
(constructor_declaration name: (identifier) @function @defines)
(compact_constructor_declaration name: (identifier) @function @defines)
(method_declaration name: (identifier) @defines !body)
[(class_declaration name: (_) @type @defines) (interface_declaration name: (_) @type @defines)
 (enum_declaration name: (_) @type @defines) (record_declaration name: (_) @type @defines)
 (annotation_type_declaration name: (_) @type @defines)]
(method_invocation name: (identifier) @invoked)
(object_creation_expression type: (_) @call)
(superclass (_) @extends)
(extends_interfaces (type_list (_) @extends))
(super_interfaces (type_list (_) @implements))
[(marker_annotation name: (_) @reference) (annotation name: (_) @reference)]
(type_identifier) @mention
(import_declaration) @import
