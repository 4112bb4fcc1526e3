(comment) @comment
[(object_type_definition (name) @type @defines) (interface_type_definition (name) @type @defines)
 (enum_type_definition (name) @type @defines) (input_object_type_definition (name) @type @defines)]
(implements_interfaces (named_type) @implements)
(fragment_spread (fragment_name) @reference)
(named_type) @mention
