"""The languages whose source code is cut by its syntax: a profile each, with the queries beside it (ING-5).

`queries/NAME.facts.scm` captures @comment, @function and @type (anywhere in a definition), @defines, @call, @invoked (a
name whose parent begins where the callee does), @reference, @mention (a type), @extends, @implements, @import.
`queries/NAME.modules.scm` is run on each @import: @module, and the @name taken from it or the @alias it is known by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

ONLY = "<only>"
LAST = "<last>"
"""In place of a field's name: the only named child, the last named child."""

_QUERIES = Path(__file__).with_name("queries")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """One language, as data."""

    name: str  # the grammar in the language pack
    inherits: tuple[str, ...] = ()  # names under which further queries stand, which come before its own
    macros: bool = False  # whether words in capitals may stand anywhere: see `macros`
    comments: frozenset[str]  # comments; one that stands above a unit is the unit's own
    offside: bool = False  # whether a comment indented deeper than a unit belongs to what is before it
    functions: frozenset[str]  # what defines a function where it has a body
    prototypes: frozenset[str] = frozenset()  # what declares a function where one of `callables` is its declarator
    callables: frozenset[str] = frozenset()
    scopes: frozenset[str] = frozenset()  # where a prototype stands for itself
    types: Mapping[str, str]  # what defines a type where it has a body, and the kind of unit it makes
    bodiless: frozenset[str] = frozenset()  # definitions that count although no field holds their body
    # what a definition may be dressed in, and the fields to look through
    wrappers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # where a definition or its dress has its name, if not in "name"
    name_fields: Mapping[str, str] = field(default_factory=dict)
    namespaces: frozenset[str] = frozenset()  # what qualifies the names inside it
    # what adds members to a type declared elsewhere: the fields of the type and of what it implements
    extensions: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    asked_methods: frozenset[str] = frozenset()  # methods in an interface that types have without saying so
    receiver: str = ""  # the field of a function that says whose method it is
    guards: frozenset[str] = frozenset()  # what stands around declarations and means nothing to them
    compounds: frozenset[str]  # statements that hold statements: cut between these where they are too long
    # statements that a whole file may be wrapped in, such as a function called at once
    wraps: frozenset[str] = frozenset()
    blocks: frozenset[str]  # sequences of statements or members
    clauses: frozenset[str] = frozenset()  # parts of compound statements that start a line of their own
    prefixes: frozenset[str] = frozenset()  # siblings that belong to what follows them
    annotations: frozenset[str] = frozenset()  # what a signature is shown without
    # what may stand in a preamble; it ends with the last of these or of the imports
    packages: frozenset[str] = frozenset()
    imports: frozenset[str]  # what imports, besides any of `importing` that holds such a thing and defines no function
    importing: frozenset[str] = frozenset()
    between: frozenset[str] = frozenset()  # what may stand between imports
    docstrings: bool = False  # whether a first statement that is nothing but a string documents what it is in
    binders: Mapping[str, str]  # how to get from a statement to the names it binds: a field, or "" for every child
    bound: frozenset[str]  # what a bound name is
    opener: str = " {"  # what follows a signature where its body starts
    selves: frozenset[str] = frozenset()  # names of the object or the type that a method belongs to
    anonymous_owners: frozenset[str] = frozenset()  # owners that stand for the file
    # what makes a statement the one that exports what the file is for, which needs no name
    exports: frozenset[str] = frozenset()
    # what counts as a type where it is exported so and holds functions, and the kind of unit it makes
    exported: Mapping[str, str] = field(default_factory=dict)
    test_marks: str = ""  # matches in the text of a test; "" where a test is known by its name alone

    def query(self, part: str) -> str:
        """Its queries of one part, "facts" or "modules"."""
        files = [_QUERIES / f"{name}.{part}.scm" for name in (*self.inherits, self.name)]
        return "".join(file.read_text(encoding="utf-8") for file in files if file.exists())


def _nodes(types: str) -> frozenset[str]:
    return frozenset(types.split())


def _fields(every: str = "", **types: str) -> dict[str, str]:
    """By type of node the field to follow; "" for each in `every`, of which all children are followed."""
    followed = {node: field for field, nodes in types.items() for node in nodes.split()}
    return {**dict.fromkeys(every.split(), ""), **followed}


PYTHON = Grammar(
    name="python",
    comments=_nodes("comment"),
    offside=True,
    functions=_nodes("function_definition"),
    types={"class_definition": "class"},
    wrappers={"decorated_definition": ("definition",)},
    compounds=_nodes("if_statement try_statement with_statement for_statement while_statement match_statement"),
    blocks=_nodes("block"),
    clauses=_nodes("elif_clause else_clause except_clause finally_clause case_clause"),
    annotations=_nodes("decorator"),
    imports=_nodes("import_statement import_from_statement future_import_statement"),
    importing=_nodes("if_statement try_statement with_statement"),
    docstrings=True,
    binders=_fields("expression_statement pattern_list tuple_pattern type", left="assignment type_alias_statement"),
    bound=_nodes("identifier attribute"),
    opener=":",
    selves=_nodes("self cls"),
)

JAVASCRIPT = Grammar(
    name="javascript",
    inherits=("ecmascript", "jsx"),
    comments=_nodes("comment html_comment"),
    functions=_nodes(
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
    name_fields=_fields(left="assignment_expression", property="field_definition", key="pair"),
    compounds=_nodes(
        "if_statement try_statement for_statement for_in_statement while_statement do_statement switch_statement "
        "statement_block labeled_statement"
    ),
    wraps=_nodes("expression_statement"),
    blocks=_nodes("statement_block class_body switch_body object"),
    clauses=_nodes("else_clause catch_clause finally_clause switch_case switch_default"),
    annotations=_nodes("decorator"),
    prefixes=_nodes("decorator"),
    imports=_nodes("import_statement"),
    importing=_nodes("lexical_declaration variable_declaration"),
    binders=_fields(
        "lexical_declaration variable_declaration object_pattern array_pattern expression_statement",
        declaration="export_statement",
        name="variable_declarator",
        left="assignment_expression",
        property="field_definition",
    ),
    bound=_nodes(
        "identifier member_expression shorthand_property_identifier_pattern property_identifier "
        "private_property_identifier"
    ),
    selves=_nodes("this"),
    anonymous_owners=_nodes("exports module.exports module window globalThis"),
    exports=_nodes("default"),
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
    name_fields=_fields(left="assignment_expression", key="pair"),
    namespaces=_nodes("internal_module module"),
    blocks=JAVASCRIPT.blocks | _nodes("interface_body enum_body object_type"),
    binders=_fields(
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
    comments=_nodes("comment"),
    functions=_nodes("function_declaration method_declaration"),
    types={"struct_type": "struct", "interface_type": "interface"},
    bodiless=_nodes("interface_type"),
    wrappers={"type_declaration": (ONLY,), "type_spec": ("type",)},
    asked_methods=_nodes("method_elem"),
    receiver="receiver",
    compounds=_nodes(
        "if_statement for_statement expression_switch_statement type_switch_statement select_statement type_declaration"
    ),
    blocks=_nodes("block statement_list field_declaration_list interface_type literal_value"),
    clauses=_nodes("expression_case type_case communication_case default_case type_spec"),
    packages=_nodes("package_clause"),
    imports=_nodes("import_declaration"),
    binders=_fields(
        "const_declaration var_declaration var_spec_list type_declaration",
        name="const_spec var_spec type_spec type_alias",
    ),
    bound=_nodes("identifier type_identifier"),
)

JAVA = Grammar(
    name="java",
    comments=_nodes("line_comment block_comment"),
    functions=_nodes("method_declaration constructor_declaration compact_constructor_declaration"),
    types={
        "class_declaration": "class",
        "interface_declaration": "interface",
        "enum_declaration": "enum",
        "record_declaration": "record",
        "annotation_type_declaration": "interface",
    },
    compounds=_nodes(
        "if_statement try_statement try_with_resources_statement for_statement enhanced_for_statement "
        "while_statement do_statement switch_expression synchronized_statement labeled_statement block "
        "static_initializer enum_body_declarations"
    ),
    guards=_nodes("enum_body_declarations"),
    blocks=_nodes(
        "block class_body interface_body enum_body enum_body_declarations annotation_type_body constructor_body "
        "switch_block"
    ),
    clauses=_nodes("catch_clause finally_clause switch_block_statement_group switch_rule"),
    annotations=_nodes("annotation marker_annotation"),
    packages=_nodes("package_declaration"),
    imports=_nodes("import_declaration"),
    binders=_fields(
        declarator="field_declaration constant_declaration",
        name="variable_declarator method_declaration enum_constant",
    ),
    bound=_nodes("identifier"),
    selves=_nodes("this"),
    test_marks=r"@(?:[\w.]+\.)?(?:Parameterized|Repeated)?Test\b",
)

RUST = Grammar(
    name="rust",
    comments=_nodes("line_comment block_comment"),
    functions=_nodes("function_item macro_definition"),
    types={"struct_item": "struct", "union_item": "union", "enum_item": "enum", "trait_item": "trait"},
    bodiless=_nodes("macro_definition"),
    namespaces=_nodes("mod_item"),
    extensions={"impl_item": ("type", "trait")},
    guards=_nodes("foreign_mod_item"),
    compounds=_nodes(
        "expression_statement if_expression match_expression for_expression while_expression loop_expression "
        "unsafe_block block"
    ),
    blocks=_nodes("block declaration_list field_declaration_list enum_variant_list match_block field_initializer_list"),
    clauses=_nodes("else_clause match_arm"),
    prefixes=_nodes("attribute_item"),
    imports=_nodes("use_declaration extern_crate_declaration"),
    packages=_nodes("inner_attribute_item"),
    between=_nodes("mod_item attribute_item"),
    binders=_fields(
        name="const_item static_item type_item struct_item mod_item function_signature_item associated_type"
    ),
    bound=_nodes("identifier type_identifier"),
    selves=_nodes("self Self"),
    test_marks=r"#\[(?:\w+::)*test\b",
)

C = Grammar(
    name="c",
    macros=True,
    comments=_nodes("comment"),
    functions=_nodes("function_definition"),
    prototypes=_nodes("declaration"),
    callables=_nodes("function_declarator"),
    scopes=_nodes("translation_unit declaration_list"),
    types={"struct_specifier": "struct", "union_specifier": "union", "enum_specifier": "enum"},
    wrappers={"declaration": ("type",), "type_definition": ("type",), "field_declaration": ("type",)},
    name_fields=_fields(declarator="function_definition declaration type_definition field_declaration"),
    guards=_nodes("preproc_ifdef preproc_if preproc_else preproc_elif preproc_elifdef linkage_specification"),
    compounds=_nodes(
        "if_statement for_statement while_statement do_statement switch_statement labeled_statement "
        "compound_statement preproc_ifdef preproc_if"
    ),
    blocks=_nodes(
        "compound_statement declaration_list field_declaration_list enumerator_list preproc_ifdef preproc_if "
        "preproc_else preproc_elif"
    ),
    clauses=_nodes("else_clause case_statement preproc_else preproc_elif preproc_elifdef"),
    imports=_nodes("preproc_include"),
    between=_nodes("preproc_def"),
    prefixes=_nodes("preproc_call"),
    binders=_fields(
        "parenthesized_declarator",
        declarator="declaration type_definition field_declaration init_declarator pointer_declarator "
        "array_declarator function_declarator",
        name="preproc_def preproc_function_def enum_specifier struct_specifier",
    ),
    bound=_nodes("identifier type_identifier field_identifier"),
    test_marks=r"\b(?:[A-Z]+_)*TEST(?:_[A-Z]+)*\s*\(",
)
CPP = replace(
    C,
    name="cpp",
    inherits=("c",),
    types={**C.types, "class_specifier": "class"},
    wrappers={**C.wrappers, "template_declaration": (LAST,)},
    namespaces=_nodes("namespace_definition"),
    compounds=C.compounds | _nodes("try_statement for_range_loop"),
    clauses=C.clauses | _nodes("catch_clause"),
    prefixes=C.prefixes | _nodes("access_specifier"),
    packages=_nodes("using_declaration"),
    binders={
        **C.binders,
        **_fields(
            "reference_declarator template_declaration",
            name="alias_declaration concept_definition template_function",
            declarator="function_definition",
        ),
    },
    bound=C.bound | _nodes("qualified_identifier destructor_name operator_name"),
    selves=_nodes("this"),
)

GRAMMARS: Mapping[str, Grammar] = {
    grammar.name: grammar for grammar in (PYTHON, GO, JAVASCRIPT, TYPESCRIPT, TSX, JAVA, RUST, C, CPP)
}
"""By `Document.language`."""
