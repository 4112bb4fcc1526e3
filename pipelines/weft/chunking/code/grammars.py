"""The languages whose source code is cut by its syntax, as data: a profile each (ING-5, ING-32)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from tree_sitter_language_pack import get_language

from weft.chunking.code.grammar import LAST, ONLY, Grammar, fields_of, nodes
from weft.chunking.code.more_grammars import MORE

PYTHON = Grammar(
    name="python",
    comments=nodes("comment"),
    offside=True,
    functions=nodes("function_definition"),
    types={"class_definition": "class"},
    wrappers={"decorated_definition": ("definition",)},
    compounds=nodes("if_statement try_statement with_statement for_statement while_statement match_statement"),
    blocks=nodes("block"),
    clauses=nodes("elif_clause else_clause except_clause finally_clause case_clause"),
    annotations=nodes("decorator"),
    imports=nodes("import_statement import_from_statement future_import_statement"),
    importing=nodes("if_statement try_statement with_statement"),
    docstrings=True,
    binders=fields_of("expression_statement pattern_list tuple_pattern type", left="assignment type_alias_statement"),
    bound=nodes("identifier attribute"),
    opener=":",
    selves=nodes("self cls"),
)

JAVASCRIPT = Grammar(
    name="javascript",
    inherits=("ecmascript", "jsx"),
    comments=nodes("comment html_comment"),
    functions=nodes(
        "function_declaration generator_function_declaration method_definition arrow_function function_expression "
        "generator_function"
    ),
    types={"class_declaration": "class", "class": "class"},
    wrappers={
        "export_statement": ("declaration", "value"),
        "lexical_declaration": (ONLY,),
        "variable_declaration": (ONLY,),
        "variable_declarator": ("value",),
        "expression_statement": (ONLY,),
        "assignment_expression": ("right",),
        "call_expression": ("arguments",),
        "arguments": (ONLY,),
        "field_definition": ("value",),
        "pair": ("value",),
    },
    name_fields=fields_of(left="assignment_expression", property="field_definition", key="pair"),
    compounds=nodes(
        "if_statement try_statement for_statement for_in_statement while_statement do_statement switch_statement "
        "statement_block labeled_statement"
    ),
    wraps=nodes("expression_statement"),
    blocks=nodes("statement_block class_body switch_body object"),
    clauses=nodes("else_clause catch_clause finally_clause switch_case switch_default"),
    annotations=nodes("decorator"),
    prefixes=nodes("decorator"),
    imports=nodes("import_statement"),
    importing=nodes("lexical_declaration variable_declaration"),
    binders=fields_of(
        "lexical_declaration variable_declaration object_pattern array_pattern expression_statement",
        declaration="export_statement",
        name="variable_declarator",
        left="assignment_expression",
        property="field_definition",
    ),
    bound=nodes(
        "identifier member_expression shorthand_property_identifier_pattern property_identifier "
        "private_property_identifier"
    ),
    selves=nodes("this"),
    anonymous_owners=nodes("exports module.exports module window globalThis"),
    exports=nodes("default"),
    exported={"object": "object"},
    test_marks=r"\A\s*(?:describe|it|test|suite)(?:\.\w+)*\s*\(",
)

TYPESCRIPT = replace(
    JAVASCRIPT,
    name="typescript",
    inherits=("ecmascript",),
    types={
        **JAVASCRIPT.types,
        "abstract_class_declaration": "class",
        "interface_declaration": "interface",
        "enum_declaration": "enum",
    },
    wrappers={
        **{node: steps for node, steps in JAVASCRIPT.wrappers.items() if node != "field_definition"},
        "public_field_definition": ("value",),
        "ambient_declaration": (ONLY,),
    },
    name_fields=fields_of(left="assignment_expression", key="pair"),
    namespaces=nodes("internal_module module"),
    blocks=JAVASCRIPT.blocks | nodes("interface_body enum_body object_type"),
    binders=fields_of(
        "lexical_declaration variable_declaration object_pattern array_pattern expression_statement "
        "ambient_declaration",
        declaration="export_statement",
        name="variable_declarator type_alias_declaration function_signature abstract_method_signature "
        "method_signature property_signature public_field_definition",
        left="assignment_expression",
    ),
    bound=JAVASCRIPT.bound | {"type_identifier"},
)
TSX = replace(TYPESCRIPT, name="tsx", inherits=("ecmascript", "jsx", "typescript"))

GO = Grammar(
    name="go",
    comments=nodes("comment"),
    functions=nodes("function_declaration method_declaration"),
    types={"struct_type": "struct", "interface_type": "interface"},
    bodiless=nodes("interface_type"),
    wrappers={"type_declaration": (ONLY,), "type_spec": ("type",)},
    asked_methods=nodes("method_elem"),
    receiver="receiver",
    compounds=nodes(
        "if_statement for_statement expression_switch_statement type_switch_statement select_statement type_declaration"
    ),
    blocks=nodes("block statement_list field_declaration_list interface_type literal_value type_declaration"),
    clauses=nodes("expression_case type_case communication_case default_case"),
    packages=nodes("package_clause"),
    imports=nodes("import_declaration"),
    binders=fields_of(
        "const_declaration var_declaration var_spec_list type_declaration",
        name="const_spec var_spec type_spec type_alias",
    ),
    bound=nodes("identifier type_identifier"),
)

JAVA = Grammar(
    name="java",
    comments=nodes("line_comment block_comment"),
    functions=nodes("method_declaration constructor_declaration compact_constructor_declaration"),
    types={
        "class_declaration": "class",
        "interface_declaration": "interface",
        "enum_declaration": "enum",
        "record_declaration": "record",
        "annotation_type_declaration": "interface",
    },
    compounds=nodes(
        "if_statement try_statement try_with_resources_statement for_statement enhanced_for_statement "
        "while_statement do_statement switch_expression synchronized_statement labeled_statement block "
        "static_initializer enum_body_declarations"
    ),
    guards=nodes("enum_body_declarations"),
    blocks=nodes(
        "block class_body interface_body enum_body enum_body_declarations annotation_type_body constructor_body "
        "switch_block"
    ),
    clauses=nodes("catch_clause finally_clause switch_block_statement_group switch_rule"),
    annotations=nodes("annotation marker_annotation"),
    packages=nodes("package_declaration"),
    imports=nodes("import_declaration"),
    binders=fields_of(
        declarator="field_declaration constant_declaration",
        name="variable_declarator method_declaration enum_constant",
    ),
    bound=nodes("identifier"),
    selves=nodes("this"),
    test_marks=r"@(?:[\w.]+\.)?(?:Parameterized|Repeated)?Test\b",
)

RUST = Grammar(
    name="rust",
    comments=nodes("line_comment block_comment"),
    functions=nodes("function_item macro_definition"),
    types={"struct_item": "struct", "union_item": "union", "enum_item": "enum", "trait_item": "trait"},
    bodiless=nodes("macro_definition"),
    namespaces=nodes("mod_item"),
    extensions={"impl_item": ("type", "trait")},
    guards=nodes("foreign_mod_item"),
    compounds=nodes(
        "expression_statement if_expression match_expression for_expression while_expression loop_expression "
        "unsafe_block block"
    ),
    blocks=nodes("block declaration_list field_declaration_list enum_variant_list match_block field_initializer_list"),
    clauses=nodes("else_clause match_arm"),
    prefixes=nodes("attribute_item"),
    imports=nodes("use_declaration extern_crate_declaration"),
    packages=nodes("inner_attribute_item"),
    between=nodes("mod_item attribute_item"),
    binders=fields_of(
        name="const_item static_item type_item struct_item mod_item function_signature_item associated_type"
    ),
    bound=nodes("identifier type_identifier"),
    selves=nodes("self Self"),
    test_marks=r"#\[(?:\w+::)*test\b",
)

C = Grammar(
    name="c",
    macros=True,
    comments=nodes("comment"),
    functions=nodes("function_definition"),
    prototypes=nodes("declaration"),
    callables=nodes("function_declarator"),
    scopes=nodes("translation_unit declaration_list"),
    types={
        "struct_specifier": "struct",
        "union_specifier": "union",
        "enum_specifier": "enum",
        "preproc_function_def": "macro",
    },
    bodiless=nodes("preproc_function_def"),
    wrappers={"declaration": ("type",), "type_definition": ("type",), "field_declaration": ("type",)},
    name_fields=fields_of(declarator="function_definition declaration type_definition field_declaration"),
    guards=nodes("preproc_ifdef preproc_if preproc_else preproc_elif preproc_elifdef linkage_specification"),
    compounds=nodes(
        "if_statement for_statement while_statement do_statement switch_statement labeled_statement "
        "compound_statement preproc_ifdef preproc_if"
    ),
    blocks=nodes(
        "compound_statement declaration_list field_declaration_list enumerator_list preproc_ifdef preproc_if "
        "preproc_else preproc_elif"
    ),
    clauses=nodes("else_clause case_statement preproc_else preproc_elif preproc_elifdef"),
    imports=nodes("preproc_include"),
    between=nodes("preproc_def"),
    prefixes=nodes("preproc_call"),
    binders=fields_of(
        "parenthesized_declarator",
        declarator="declaration type_definition field_declaration init_declarator pointer_declarator "
        "array_declarator function_declarator",
        name="preproc_def preproc_function_def enum_specifier struct_specifier",
    ),
    bound=nodes("identifier type_identifier field_identifier"),
    test_marks=r"\b(?:[A-Z]+_)*TEST(?:_[A-Z]+)*\s*\(",
)
CPP = replace(
    C,
    name="cpp",
    inherits=("c",),
    types={**C.types, "class_specifier": "class"},
    wrappers={**C.wrappers, "template_declaration": (LAST,)},
    namespaces=nodes("namespace_definition"),
    compounds=C.compounds | nodes("try_statement for_range_loop"),
    clauses=C.clauses | nodes("catch_clause"),
    prefixes=C.prefixes | nodes("access_specifier"),
    packages=nodes("using_declaration"),
    binders={
        **C.binders,
        **fields_of(
            "reference_declarator template_declaration",
            name="alias_declaration concept_definition template_function",
            declarator="function_definition",
        ),
    },
    bound=C.bound | nodes("qualified_identifier destructor_name operator_name"),
    selves=nodes("this"),
)

CUDA = replace(CPP, name="cuda", inherits=("c", "cpp"))

GRAMMARS: Mapping[str, Grammar] = {
    grammar.name: grammar for grammar in (PYTHON, GO, JAVASCRIPT, TYPESCRIPT, TSX, JAVA, RUST, C, CPP, CUDA, *MORE)
}
"""By `Document.language`."""

# Of a language without a profile: what its nodes are like, by their names.
_COMMENT = re.compile(r"(?:\w+_)?comment|pod|haddock")
_LEADING = re.compile(r"(?:\w+_)?(?:attribute|annotation|decorator|signature)s?|unary_operator")  # see `leads`
_FUNCTION = re.compile(
    r"(?:\w+_)?(?:function|method|procedure|subroutine|constructor|macro|modifier|event)(?:_\w+)?"
    r"_(?:definition|declaration|item|statement|def)|subroutine|function|procedure"
)
_TYPE = re.compile(
    r"(?:\w+_)?(class|struct|interface|trait|enum|union|object|record|module|contract|library|protocol|mixin|package)"
    r"(?:_\w+)?_(?:definition|declaration|item|specifier|statement)"
)
_COMPOUND = re.compile(r"(?:\w+_)?(?:if|for|foreach|while|until|switch|case|match|try|do|loop|with|when)(?:_\w+)?")
_BLOCK = re.compile(r"(?:\w+_)?(?:block|body|suite|statements|declarations|members|list|compound_statement)")
_KINDS = (_COMMENT, _FUNCTION, _BLOCK, _LEADING)
_WRITTEN_AS_PAGES = frozenset({"html", "svelte", "vue"})  # code stands in them, which the grammar takes for text


@cache
def grammar_of(language: str) -> Grammar | None:
    """The profile of a language; one by the names of its nodes where nobody wrote one, None without a grammar.

    Examples:
        >>> grammar_of("dart").types["class_definition"], grammar_of("nothing")
        ('class', None)
    """
    if language in GRAMMARS or language in _WRITTEN_AS_PAGES:
        return GRAMMARS.get(language)
    try:
        grammar = get_language(language)  # a name that it does not know is refused
    except LookupError:
        return None
    numbers = range(grammar.node_kind_count)
    kinds = sorted({grammar.node_kind_for_id(one) or "" for one in numbers if grammar.node_kind_is_named(one)})
    kinds = [kind for kind in kinds if kind and not kind.startswith("_") and kind.isidentifier()]
    like = {pattern: [kind for kind in kinds if pattern.fullmatch(kind)] for pattern in _KINDS}
    types = {kind: match[1] for kind in kinds if (match := _TYPE.fullmatch(kind))}
    captures = {"comment": like[_COMMENT], "function": like[_FUNCTION], "type": types}
    return Grammar(
        name=language,
        comments=frozenset(like[_COMMENT]),
        functions=frozenset(like[_FUNCTION]),
        types=types,
        compounds=frozenset(kind for kind in kinds if _COMPOUND.fullmatch(kind)),
        blocks=frozenset(like[_BLOCK]),
        prefixes=frozenset(like[_LEADING]),
        imports=frozenset(),
        binders={},
        bound=frozenset(),
        named_by=nodes("identifier name") & frozenset(kinds),
        facts="".join(f"({kind}) @{name}\n" for name, some in captures.items() for kind in some) or "(ERROR) @comment",
    )
