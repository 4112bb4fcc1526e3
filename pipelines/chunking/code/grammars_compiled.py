"""Profiles of languages that are compiled: Go, Java, Rust, C, C++."""

from __future__ import annotations

from dataclasses import replace

from pipelines.chunking.code.grammar import LAST, ONLY, Grammar

GO = Grammar(
    name="go",
    comments=frozenset({"comment"}),
    functions=frozenset({"function_declaration", "method_declaration"}),
    types={"struct_type": "struct", "interface_type": "interface"},
    bodiless=frozenset({"interface_type"}),
    wrappers={"type_declaration": (ONLY,), "type_spec": ("type",)},
    receiver="receiver",
    compounds=frozenset(
        {
            "if_statement",
            "for_statement",
            "expression_switch_statement",
            "type_switch_statement",
            "select_statement",
            "type_declaration",
        }
    ),
    blocks=frozenset({"block", "statement_list", "field_declaration_list", "interface_type", "literal_value"}),
    clauses=frozenset({"expression_case", "type_case", "communication_case", "default_case", "type_spec"}),
    packages=frozenset({"package_clause"}),
    imports=frozenset({"import_declaration"}),
    binders={
        "const_declaration": "",
        "var_declaration": "",
        "var_spec_list": "",
        "const_spec": "name",
        "var_spec": "name",
        "type_declaration": "",
        "type_spec": "name",
        "type_alias": "name",
    },
    bound=frozenset({"identifier", "type_identifier"}),
    facts="""
(comment) @comment
(function_declaration) @function
(method_declaration) @function
(type_spec type: [(struct_type) (interface_type)]) @type
(call_expression function: [(identifier) (selector_expression)] @call)
(field_declaration !name type: (_) @extends)
(interface_type (type_elem [(type_identifier) (qualified_type)] @extends))
[(type_identifier) (qualified_type)] @mention
(import_spec) @import
""",
    modules="""
(import_spec !name path: (_) @module)
(import_spec name: (_) @alias path: (_) @module)
""",
)

JAVA = Grammar(
    name="java",
    comments=frozenset({"line_comment", "block_comment"}),
    functions=frozenset({"method_declaration", "constructor_declaration", "compact_constructor_declaration"}),
    types={
        "class_declaration": "class",
        "interface_declaration": "interface",
        "enum_declaration": "enum",
        "record_declaration": "record",
        "annotation_type_declaration": "interface",
    },
    compounds=frozenset(
        {
            "if_statement",
            "try_statement",
            "try_with_resources_statement",
            "for_statement",
            "enhanced_for_statement",
            "while_statement",
            "do_statement",
            "switch_expression",
            "synchronized_statement",
            "labeled_statement",
            "block",
            "static_initializer",
            "enum_body_declarations",
        }
    ),
    guards=frozenset({"enum_body_declarations"}),
    blocks=frozenset(
        {
            "block",
            "class_body",
            "interface_body",
            "enum_body",
            "enum_body_declarations",
            "annotation_type_body",
            "constructor_body",
            "switch_block",
        }
    ),
    clauses=frozenset({"catch_clause", "finally_clause", "switch_block_statement_group", "switch_rule"}),
    annotations=frozenset({"annotation", "marker_annotation"}),
    packages=frozenset({"package_declaration"}),
    imports=frozenset({"import_declaration"}),
    binders={
        "field_declaration": "declarator",
        "constant_declaration": "declarator",
        "variable_declarator": "name",
        "method_declaration": "name",
        "enum_constant": "name",
    },
    bound=frozenset({"identifier"}),
    selves=frozenset({"this"}),
    test_marks=r"@(?:[\w.]+\.)?(?:Parameterized|Repeated)?Test\b",
    facts="""
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
""",
    modules="""
(import_declaration (scoped_identifier) @module)
(import_declaration (identifier) @module)
""",
)

RUST = Grammar(
    name="rust",
    comments=frozenset({"line_comment", "block_comment"}),
    functions=frozenset({"function_item", "macro_definition"}),
    types={"struct_item": "struct", "union_item": "union", "enum_item": "enum", "trait_item": "trait"},
    bodiless=frozenset({"macro_definition"}),
    namespaces=frozenset({"mod_item"}),
    extensions={"impl_item": ("type", "trait")},
    guards=frozenset({"foreign_mod_item"}),
    compounds=frozenset(
        {
            "expression_statement",
            "if_expression",
            "match_expression",
            "for_expression",
            "while_expression",
            "loop_expression",
            "unsafe_block",
            "block",
        }
    ),
    blocks=frozenset(
        {
            "block",
            "declaration_list",
            "field_declaration_list",
            "enum_variant_list",
            "match_block",
            "field_initializer_list",
        }
    ),
    clauses=frozenset({"else_clause", "match_arm"}),
    prefixes=frozenset({"attribute_item"}),
    imports=frozenset({"use_declaration", "extern_crate_declaration"}),
    packages=frozenset({"inner_attribute_item"}),
    between=frozenset({"mod_item", "attribute_item"}),
    binders={
        "const_item": "name",
        "static_item": "name",
        "type_item": "name",
        "struct_item": "name",
        "mod_item": "name",
        "function_signature_item": "name",
        "associated_type": "name",
    },
    bound=frozenset({"identifier", "type_identifier"}),
    selves=frozenset({"self", "Self"}),
    test_marks=r"#\[(?:\w+::)*test\b",
    facts="""
[(line_comment) (block_comment)] @comment
(function_item name: (_) @function @defines)
(macro_definition name: (_) @function @defines)
(function_signature_item name: (_) @defines)
[(struct_item name: (_) @type @defines) (union_item name: (_) @type @defines)
 (enum_item name: (_) @type @defines) (trait_item name: (_) @type @defines)]
(call_expression function: [(identifier) (scoped_identifier) (field_expression) (generic_function)] @call)
(macro_invocation macro: (_) @call)
(token_tree (identifier) @call . (token_tree))
(trait_item bounds: (trait_bounds [(type_identifier) (scoped_type_identifier) (generic_type)] @extends))
(impl_item trait: (_) @implements)
(attribute_item (attribute (identifier) @reference))
[(type_identifier) (scoped_type_identifier)] @mention
[(use_declaration) (extern_crate_declaration)] @import
""",
    modules="""
(use_declaration argument: (_) @module)
(extern_crate_declaration name: (_) @module)
""",
)

_C_FACTS = """
(comment) @comment
(function_definition) @function
(struct_specifier name: (_) @defines body: (_)) @type
(union_specifier name: (_) @defines body: (_)) @type
(enum_specifier name: (_) @defines body: (_))
(preproc_def name: (_) @defines)
(preproc_function_def name: (_) @defines)
(call_expression function: [(identifier) (field_expression)] @call)
(type_identifier) @mention
(preproc_include) @import
"""
C = Grammar(
    name="c",
    comments=frozenset({"comment"}),
    functions=frozenset({"function_definition"}),
    types={"struct_specifier": "struct", "union_specifier": "union", "enum_specifier": "enum"},
    wrappers={"declaration": ("type",), "type_definition": ("type",), "field_declaration": ("type",)},
    name_fields={
        "function_definition": "declarator",
        "declaration": "declarator",
        "type_definition": "declarator",
        "field_declaration": "declarator",
    },
    guards=frozenset(
        {
            "preproc_ifdef",
            "preproc_if",
            "preproc_else",
            "preproc_elif",
            "preproc_elifdef",
            "linkage_specification",
        }
    ),
    compounds=frozenset(
        {
            "if_statement",
            "for_statement",
            "while_statement",
            "do_statement",
            "switch_statement",
            "labeled_statement",
            "compound_statement",
            "preproc_ifdef",
            "preproc_if",
        }
    ),
    blocks=frozenset(
        {
            "compound_statement",
            "declaration_list",
            "field_declaration_list",
            "enumerator_list",
            "preproc_ifdef",
            "preproc_if",
            "preproc_else",
            "preproc_elif",
        }
    ),
    clauses=frozenset({"else_clause", "case_statement", "preproc_else", "preproc_elif", "preproc_elifdef"}),
    imports=frozenset({"preproc_include"}),
    between=frozenset({"preproc_def"}),
    prefixes=frozenset({"preproc_call"}),
    binders={
        "declaration": "declarator",
        "type_definition": "declarator",
        "field_declaration": "declarator",
        "init_declarator": "declarator",
        "pointer_declarator": "declarator",
        "array_declarator": "declarator",
        "function_declarator": "declarator",
        "parenthesized_declarator": "",
        "preproc_def": "name",
        "preproc_function_def": "name",
        "enum_specifier": "name",
        "struct_specifier": "name",
    },
    bound=frozenset({"identifier", "type_identifier", "field_identifier"}),
    facts=_C_FACTS,
    modules="(preproc_include path: (_) @module)",
)
CPP = replace(
    C,
    name="cpp",
    types={**C.types, "class_specifier": "class"},
    wrappers={**C.wrappers, "template_declaration": (LAST,)},
    namespaces=frozenset({"namespace_definition"}),
    compounds=C.compounds | {"try_statement", "for_range_loop"},
    clauses=C.clauses | {"catch_clause"},
    prefixes=C.prefixes | {"access_specifier"},
    packages=frozenset({"using_declaration"}),
    binders={
        **C.binders,
        "reference_declarator": "",
        "template_declaration": "",
        "alias_declaration": "name",
        "concept_definition": "name",
        "function_definition": "declarator",
    },
    bound=C.bound | {"qualified_identifier", "destructor_name", "operator_name"},
    selves=frozenset({"this"}),
    test_marks=r"\bTEST(?:_[FP])?\s*\(",
    facts=_C_FACTS
    + """
(class_specifier name: (_) @defines body: (_)) @type
(alias_declaration name: (_) @defines)
(call_expression function: [(qualified_identifier) (template_function)] @call)
(new_expression type: (_) @call)
(base_class_clause [(type_identifier) (qualified_identifier) (template_type)] @extends)
""",
)
