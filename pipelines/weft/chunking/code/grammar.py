"""What a profile of a language says: which nodes of its syntax define what, with the queries beside it (ING-5).

`queries/NAME.facts.scm` captures @comment, @function and @type (anywhere in a definition), @defines, @call, @invoked (a
name whose parent begins where the callee does), @used (the same, of what is no callee), @reference, @mention (a type),
@extends, @implements, @import.
`queries/NAME.modules.scm` is run on each @import: @module, and the @name taken from it or the @alias it is known by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
    named_by: frozenset[str] = frozenset()  # children that name what no field names: the first
    named_by_all: bool = False  # whether all of these make the name: `resource "bucket" "shelf"`
    spaces: bool = False  # whether what qualifies a name is no type, but a space of names such as a schema
    kinds: frozenset[str] = frozenset()  # words in a definition that say which kind of type it is
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
    markup: frozenset[str] = frozenset()  # what code stands in that is shown as it is
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
    # what a name is said to begin with elsewhere, by what it begins with where it is used; "" for all others
    beginnings: Mapping[str, str] = field(default_factory=dict)
    packaged: bool = False  # whether words in lower case before the name of a type are its package
    anonymous_owners: frozenset[str] = frozenset()  # owners that stand for the file
    # what makes a statement the one that exports what the file is for, which needs no name
    exports: frozenset[str] = frozenset()
    # what counts as a type where it is exported so and holds functions, and the kind of unit it makes
    exported: Mapping[str, str] = field(default_factory=dict)
    test_marks: str = ""  # matches in the text of a test; "" where a test is known by its name alone

    facts: str = ""  # queries of facts that stand in no file

    def query(self, part: str) -> str:
        """Its queries of one part, "facts" or "modules"."""
        if self.facts:
            return self.facts
        files = [_QUERIES / f"{name}.{part}.scm" for name in (*self.inherits, self.name)]
        return "".join(file.read_text(encoding="utf-8") for file in files if file.exists())


def nodes(types: str) -> frozenset[str]:
    """Types of nodes, named with blanks between them."""
    return frozenset(types.split())


def fields_of(every: str = "", **types: str) -> dict[str, str]:
    """By type of node the field to follow; "" for each in `every`, of which all children are followed."""
    followed = {node: field for field, nodes in types.items() for node in nodes.split()}
    return {**dict.fromkeys(every.split(), ""), **followed}
