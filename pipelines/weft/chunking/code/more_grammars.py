"""Profiles of further languages (ING-32)."""

from __future__ import annotations

from weft.chunking.code.grammar import LAST, ONLY, Grammar, fields_of, nodes

CSHARP = Grammar(
    name="csharp",
    comments=nodes("comment"),
    functions=nodes(
        "method_declaration constructor_declaration destructor_declaration operator_declaration "
        "local_function_statement indexer_declaration"
    ),
    types={
        "class_declaration": "class",
        "interface_declaration": "interface",
        "struct_declaration": "struct",
        "record_declaration": "record",
        "enum_declaration": "enum",
    },
    bodiless=nodes("record_declaration"),
    name_fields=fields_of(operator="operator_declaration"),
    namespaces=nodes("namespace_declaration"),
    compounds=nodes(
        "if_statement for_statement foreach_statement while_statement do_statement switch_statement try_statement "
        "using_statement lock_statement block"
    ),
    blocks=nodes(
        "block declaration_list enum_member_declaration_list switch_body accessor_list arrow_expression_clause"
    ),
    clauses=nodes("catch_clause finally_clause switch_section"),
    annotations=nodes("attribute_list"),
    prefixes=nodes("preproc_region preproc_endregion"),
    packages=nodes("file_scoped_namespace_declaration"),
    imports=nodes("using_directive extern_alias_directive"),
    binders=fields_of(
        name="property_declaration enum_member_declaration delegate_declaration method_declaration",
    ),
    bound=nodes("identifier"),
    selves=nodes("this base"),
    test_marks=r"\[(?:Fact|Theory|Test|TestCase|TestMethod)\b",
)

KOTLIN = Grammar(
    name="kotlin",
    comments=nodes("line_comment multiline_comment"),
    functions=nodes("function_declaration secondary_constructor"),
    types={"class_declaration": "class", "object_declaration": "object"},
    bodiless=nodes("class_declaration"),
    kinds=nodes("interface enum"),
    named_by=nodes("type_identifier simple_identifier"),
    guards=nodes("companion_object"),
    receiver="receiver",
    compounds=nodes("if_expression when_expression for_statement while_statement do_while_statement try_expression"),
    blocks=nodes("class_body enum_class_body function_body statements control_structure_body lambda_literal"),
    clauses=nodes("when_entry catch_block finally_block"),
    annotations=nodes("annotation"),
    packages=nodes("file_annotation package_header"),
    imports=nodes("import_list import_header"),
    binders=fields_of("property_declaration variable_declaration type_alias enum_entry"),
    bound=nodes("simple_identifier type_identifier"),
    selves=nodes("this"),
    test_marks=r"@(?:\w+\.)*Test\b",
)

PHP = Grammar(
    name="php",
    comments=nodes("comment"),
    functions=nodes("function_definition method_declaration"),
    types={
        "class_declaration": "class",
        "interface_declaration": "interface",
        "trait_declaration": "trait",
        "enum_declaration": "enum",
    },
    namespaces=nodes("namespace_definition"),
    compounds=nodes(
        "if_statement for_statement foreach_statement while_statement do_statement switch_statement try_statement "
        "compound_statement"
    ),
    blocks=nodes("compound_statement declaration_list enum_declaration_list switch_block match_block"),
    clauses=nodes("else_clause else_if_clause catch_clause finally_clause case_statement default_statement"),
    markup=nodes("text_interpolation"),
    annotations=nodes("attribute_list"),
    packages=nodes("php_tag namespace_definition declare_statement"),
    imports=nodes("namespace_use_declaration"),
    binders=fields_of(
        "const_declaration const_element property_declaration expression_statement variable_name",
        name="property_element method_declaration enum_case",
        left="assignment_expression",
    ),
    bound=nodes("name"),
    selves=nodes("$this self static"),
    test_marks=r"#\[Test\b|@test\b|function\s+test",
)

RUBY = Grammar(
    name="ruby",
    comments=nodes("comment"),
    functions=nodes("method singleton_method"),
    types={"class": "class"},
    bodiless=nodes("method singleton_method class"),
    namespaces=nodes("module"),
    guards=nodes("singleton_class"),
    compounds=nodes("if unless case while until for begin call do_block block"),
    blocks=nodes("body_statement block_body then else ensure do"),
    clauses=nodes("elsif else when in_clause rescue ensure"),
    imports=frozenset(),
    importing=nodes("call"),
    binders=fields_of(left="assignment"),
    bound=nodes("constant instance_variable class_variable global_variable"),
    opener="",
    selves=nodes("self"),
    test_marks=r"\A\s*(?:RSpec\.)?(?:describe|context|it|test|specify)\b",
)

SWIFT = Grammar(
    name="swift",
    comments=nodes("comment multiline_comment"),
    functions=nodes("function_declaration init_declaration deinit_declaration subscript_declaration"),
    types={"class_declaration": "class", "protocol_declaration": "protocol"},
    kinds=nodes("struct enum extension actor"),
    named_by=nodes("init deinit subscript"),
    compounds=nodes(
        "if_statement guard_statement for_statement while_statement repeat_while_statement switch_statement "
        "do_statement"
    ),
    blocks=nodes("class_body enum_class_body protocol_body function_body statements lambda_literal"),
    clauses=nodes("switch_entry catch_block"),
    annotations=nodes("attribute"),
    imports=nodes("import_declaration"),
    binders=fields_of(
        "pattern", name="property_declaration enum_entry protocol_function_declaration typealias_declaration"
    ),
    bound=nodes("simple_identifier type_identifier"),
    selves=nodes("self Self"),
    test_marks=r"@Test\b",
)

SCALA = Grammar(
    name="scala",
    comments=nodes("comment block_comment"),
    functions=nodes("function_definition"),
    types={
        "class_definition": "class",
        "object_definition": "object",
        "trait_definition": "trait",
        "enum_definition": "enum",
    },
    bodiless=nodes("class_definition object_definition trait_definition function_definition"),
    namespaces=nodes("package_clause"),
    wrappers={"extension_definition": ("body",)},
    compounds=nodes("if_expression match_expression for_expression while_expression try_expression block"),
    blocks=nodes("template_body block indented_block case_block enum_body with_template_body"),
    clauses=nodes("case_clause catch_clause finally_clause"),
    annotations=nodes("annotation"),
    packages=nodes("package_clause"),
    imports=nodes("import_declaration"),
    binders=fields_of(
        pattern="val_definition var_definition",
        name="function_declaration val_declaration type_definition given_definition",
    ),
    bound=nodes("identifier type_identifier"),
    selves=nodes("this"),
    test_marks=r"\A\s*test\s*\(",
)

BASH = Grammar(
    name="bash",
    comments=nodes("comment"),
    functions=nodes("function_definition"),
    types={},
    compounds=nodes(
        "if_statement for_statement c_style_for_statement while_statement case_statement compound_statement subshell"
    ),
    blocks=nodes("compound_statement do_group subshell"),
    clauses=nodes("elif_clause else_clause case_item"),
    imports=frozenset(),
    binders=fields_of("declaration_command", name="variable_assignment"),
    bound=nodes("variable_name"),
)

LUA = Grammar(
    name="lua",
    comments=nodes("comment"),
    functions=nodes("function_declaration function_definition"),
    types={},
    bodiless=nodes("function_declaration function_definition"),
    wrappers={"variable_declaration": (ONLY,), "assignment_statement": (LAST,), "expression_list": (ONLY,)},
    named_by=nodes("variable_list"),
    compounds=nodes("if_statement for_statement while_statement repeat_statement do_statement"),
    blocks=nodes("block table_constructor"),
    clauses=nodes("elseif_statement else_statement"),
    imports=frozenset(),
    importing=nodes("variable_declaration function_call"),
    binders=fields_of("variable_declaration assignment_statement variable_list"),
    bound=nodes("identifier dot_index_expression"),
    opener="",
    selves=nodes("self"),
)

SQL = Grammar(  # cut without it: see `sql`
    name="sql",
    comments=nodes("comment marginalia"),
    functions=frozenset(),
    types={},
    spaces=True,
    compounds=frozenset(),
    blocks=frozenset(),
    imports=frozenset(),
    binders={},
    bound=frozenset(),
)

PROTO = Grammar(
    name="proto",
    comments=nodes("comment"),
    functions=nodes("rpc"),
    types={"message": "message", "enum": "enum", "service": "service", "extend": "extend"},
    bodiless=nodes("rpc service extend"),
    named_by=nodes("message_name enum_name service_name rpc_name full_ident"),
    compounds=nodes("message enum service"),
    blocks=nodes("message_body enum_body service"),
    packages=nodes("syntax edition package option"),
    imports=nodes("import"),
    binders={},
    bound=frozenset(),
    packaged=True,
)

HCL = Grammar(
    name="hcl",
    comments=nodes("comment"),
    functions=frozenset(),
    types={"block": "block"},
    bodiless=nodes("block"),
    guards=nodes("body"),
    named_by=nodes("identifier string_lit"),
    named_by_all=True,
    spaces=True,
    compounds=nodes("block attribute object object_elem"),
    blocks=nodes("body object"),
    imports=frozenset(),
    binders=fields_of("attribute"),
    bound=nodes("identifier"),
    beginnings={"var": "variable", "local": "locals", "module": "module", "data": "data", "": "resource"},
)

_GRAPHQL_TYPES = {
    "object_type_definition": "type",
    "interface_type_definition": "interface",
    "enum_type_definition": "enum",
    "union_type_definition": "union",
    "input_object_type_definition": "input",
    "scalar_type_definition": "scalar",
    "directive_definition": "directive",
    "object_type_extension": "extend",
    "interface_type_extension": "extend",
    "input_object_type_extension": "extend",
    "enum_type_extension": "extend",
    "operation_definition": "operation",
    "fragment_definition": "fragment",
}
GRAPHQL = Grammar(
    name="graphql",
    comments=nodes("comment"),
    functions=frozenset(),
    types=_GRAPHQL_TYPES,
    bodiless=frozenset(_GRAPHQL_TYPES),
    wrappers=dict.fromkeys(
        nodes(
            "definition type_system_definition type_definition type_system_extension type_extension "
            "executable_definition"
        ),
        (ONLY,),
    ),
    named_by=nodes("name fragment_name"),
    guards=nodes("document"),
    annotations=nodes("description"),
    compounds=frozenset(_GRAPHQL_TYPES),
    blocks=nodes("fields_definition enum_values_definition input_fields_definition selection_set document"),
    imports=frozenset(),
    binders={},
    bound=frozenset(),
)

MORE = (CSHARP, KOTLIN, PHP, RUBY, SWIFT, SCALA, BASH, LUA, SQL, PROTO, HCL, GRAPHQL)
"""All of them."""
