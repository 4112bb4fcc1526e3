"""Profiles of languages that are run from source: Python, JavaScript, TypeScript."""

from __future__ import annotations

from dataclasses import replace

from pipelines.chunking.code.grammar import ONLY, Grammar

PYTHON = Grammar(
    name="python",
    comments=frozenset({"comment"}),
    offside=True,
    functions=frozenset({"function_definition"}),
    types={"class_definition": "class"},
    wrappers={"decorated_definition": ("definition",)},
    compounds=frozenset(
        {"if_statement", "try_statement", "with_statement", "for_statement", "while_statement", "match_statement"}
    ),
    blocks=frozenset({"block"}),
    clauses=frozenset({"elif_clause", "else_clause", "except_clause", "finally_clause", "case_clause"}),
    annotations=frozenset({"decorator"}),
    imports=frozenset({"import_statement", "import_from_statement", "future_import_statement"}),
    importing=frozenset({"if_statement", "try_statement", "with_statement"}),
    docstrings=True,
    binders={
        "expression_statement": "",
        "assignment": "left",
        "type_alias_statement": "left",
        "pattern_list": "",
        "tuple_pattern": "",
        "type": "",
    },
    bound=frozenset({"identifier", "attribute"}),
    opener=":",
    selves=frozenset({"self", "cls"}),
    facts="""
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
""",
    modules="""
(import_statement name: (dotted_name) @module)
(import_statement name: (aliased_import name: (dotted_name) @module alias: (identifier) @alias))
(import_from_statement module_name: (_) @module name: (dotted_name) @name)
(import_from_statement module_name: (_) @module name: (aliased_import name: (_) @name alias: (_) @alias))
(import_from_statement module_name: (_) @module (wildcard_import))
""",
)

_SCRIPT_FACTS = """
(comment) @comment
(function_declaration name: (identifier) @function @defines)
(generator_function_declaration name: (identifier) @function @defines)
(method_definition name: (_) @function @defines)
(variable_declarator name: (identifier) @function @defines value: [(arrow_function) (function_expression)])
(assignment_expression left: (member_expression) @function right: [(arrow_function) (function_expression)])
(class_declaration name: (_) @type @defines)
(call_expression function: [(identifier) (member_expression)] @call)
(new_expression constructor: [(identifier) (member_expression)] @call)
(decorator [(identifier) (member_expression)] @reference)
(decorator (call_expression function: [(identifier) (member_expression)] @reference))
(import_statement) @import
(export_statement source: (_)) @import
((variable_declarator value: (call_expression function: (identifier) @_require)) @import (#eq? @_require "require"))
"""
_JSX_FACTS = """
((jsx_opening_element name: (_) @call) (#match? @call "^[A-Z]"))
((jsx_self_closing_element name: (_) @call) (#match? @call "^[A-Z]"))
"""
_SCRIPT = Grammar(  # what JavaScript and TypeScript share
    name="javascript",
    comments=frozenset({"comment", "html_comment"}),
    functions=frozenset(
        {
            "function_declaration",
            "generator_function_declaration",
            "method_definition",
            "arrow_function",
            "function_expression",
            "generator_function",
        }
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
    },
    name_fields={"assignment_expression": "left"},
    compounds=frozenset(
        {
            "if_statement",
            "try_statement",
            "for_statement",
            "for_in_statement",
            "while_statement",
            "do_statement",
            "switch_statement",
            "statement_block",
            "labeled_statement",
        }
    ),
    wraps=frozenset({"expression_statement"}),
    blocks=frozenset({"statement_block", "class_body", "switch_body", "object"}),
    clauses=frozenset({"else_clause", "catch_clause", "finally_clause", "switch_case", "switch_default"}),
    annotations=frozenset({"decorator"}),
    prefixes=frozenset({"decorator"}),
    imports=frozenset({"import_statement"}),
    importing=frozenset({"lexical_declaration", "variable_declaration"}),
    binders={
        "export_statement": "declaration",
        "lexical_declaration": "",
        "variable_declaration": "",
        "variable_declarator": "name",
        "object_pattern": "",
        "array_pattern": "",
        "expression_statement": "",
        "assignment_expression": "left",
    },
    bound=frozenset(
        {
            "identifier",
            "member_expression",
            "shorthand_property_identifier_pattern",
            "property_identifier",
            "private_property_identifier",
        }
    ),
    selves=frozenset({"this"}),
    test_marks=r"\A\s*(?:describe|it|test|suite)(?:\.\w+)*\s*\(",
    anonymous_owners=frozenset({"exports", "module.exports", "module", "window", "globalThis"}),
    facts=_SCRIPT_FACTS,
    modules="""
(import_statement source: (string) @module)
(import_statement (import_clause (identifier) @name) source: (_) @module)
(import_statement (import_clause (namespace_import (identifier) @alias)) source: (_) @module)
(import_statement (import_clause (named_imports (import_specifier name: (_) @name !alias))) source: (_) @module)
(import_statement (import_clause (named_imports (import_specifier name: (_) @name alias: (_) @alias)))
  source: (_) @module)
(export_statement source: (_) @module)
(variable_declarator name: (identifier) @alias value: (call_expression arguments: (arguments (string) @module)))
(variable_declarator name: (object_pattern (shorthand_property_identifier_pattern) @name)
  value: (call_expression arguments: (arguments (string) @module)))
""",
)

JAVASCRIPT = replace(
    _SCRIPT,
    wrappers={**_SCRIPT.wrappers, "field_definition": ("value",)},
    name_fields={**_SCRIPT.name_fields, "field_definition": "property"},
    binders={**_SCRIPT.binders, "field_definition": "property"},
    facts=_SCRIPT_FACTS + _JSX_FACTS + "(class_heritage [(identifier) (member_expression)] @extends)",
)

_TYPESCRIPT_FACTS = """
(abstract_class_declaration name: (_) @type @defines)
(interface_declaration name: (_) @defines)
(enum_declaration name: (_) @defines)
(type_alias_declaration name: (_) @defines)
(extends_clause value: (_) @extends)
(extends_type_clause type: (_) @extends)
(implements_clause (_) @implements)
[(type_identifier) (nested_type_identifier)] @mention
"""
TYPESCRIPT = replace(
    _SCRIPT,
    name="typescript",
    types={
        **_SCRIPT.types,
        "abstract_class_declaration": "class",
        "interface_declaration": "interface",
        "enum_declaration": "enum",
    },
    wrappers={**_SCRIPT.wrappers, "public_field_definition": ("value",), "ambient_declaration": (ONLY,)},
    namespaces=frozenset({"internal_module", "module"}),
    blocks=_SCRIPT.blocks | {"interface_body", "enum_body", "object_type"},
    binders={
        **_SCRIPT.binders,
        "ambient_declaration": "",
        "type_alias_declaration": "name",
        "function_signature": "name",
        "abstract_method_signature": "name",
        "method_signature": "name",
        "property_signature": "name",
        "public_field_definition": "name",
    },
    bound=_SCRIPT.bound | {"type_identifier"},
    facts=_SCRIPT_FACTS + _TYPESCRIPT_FACTS,
)
TSX = replace(TYPESCRIPT, name="tsx", facts=_SCRIPT_FACTS + _JSX_FACTS + _TYPESCRIPT_FACTS)
