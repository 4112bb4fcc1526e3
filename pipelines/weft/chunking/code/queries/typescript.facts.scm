(abstract_class_declaration name: (_) @type @defines)
(interface_declaration name: (_) @defines)
(enum_declaration name: (_) @defines)
(type_alias_declaration name: (_) @defines)
(extends_clause value: (_) @extends)
(extends_type_clause type: (_) @extends)
(implements_clause (_) @implements)
[(type_identifier) (nested_type_identifier)] @mention
