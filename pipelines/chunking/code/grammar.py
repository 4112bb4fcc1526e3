"""What the chunker of source code needs to know about a language: names of its grammar's nodes, and two queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

ONLY = "<only>"
LAST = "<last>"
"""In place of a field's name: the only named child, the last named child."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """One language, as data.

    Attributes:
        name: The grammar in the language pack.
        comments: Comments; one that stands above a unit is the unit's own.
        offside: Whether a comment indented deeper than a unit belongs to what is before it.
        functions: What defines a function where it has a body.
        types: What defines a type where it has a body, and the kind of unit it makes.
        bodiless: Definitions that count although no field holds their body.
        wrappers: What a definition may be dressed in, and the fields to look through.
        name_fields: Where a definition or its dress has its name, if not in "name".
        namespaces: What qualifies the names inside it.
        extensions: What adds members to a type declared elsewhere: the fields of the type and of what it implements.
        receiver: The field of a function that says whose method it is.
        guards: What stands around declarations and means nothing to them.
        compounds: Statements that hold statements: cut between these where they are too long.
        wraps: Statements that a whole file may be wrapped in, such as a function called at once.
        blocks: Sequences of statements or members.
        clauses: Parts of compound statements that start a line of their own.
        prefixes: Siblings that belong to what follows them.
        annotations: What a signature is shown without.
        packages: What may stand in a preamble; it ends with the last of these or of the imports.
        imports: What imports, besides any of `importing` that holds such a thing and defines no function.
        between: What may stand between imports.
        docstrings: Whether a first statement that is nothing but a string documents what it is in.
        binders: How to get from a statement to the names it binds: a field, or "" for every child.
        bound: What a bound name is.
        opener: What follows a signature where its body starts.
        selves: Names of the object or the type that a method belongs to.
        anonymous_owners: Owners that stand for the file.
        test_marks: Matches in the text of a test; "" where a test is known by its name alone.
        facts: Query: @comment, @function and @type (anywhere in a definition), @defines, @call, @invoked (a name whose
            parent begins where the callee does), @reference, @mention (a type), @extends, @implements, @import.
        modules: Query, run on each @import: @module, and the @name taken from it or the @alias it is known by.
    """

    name: str
    comments: frozenset[str]
    offside: bool = False
    functions: frozenset[str]
    types: Mapping[str, str]
    bodiless: frozenset[str] = frozenset()
    wrappers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    name_fields: Mapping[str, str] = field(default_factory=dict)
    namespaces: frozenset[str] = frozenset()
    extensions: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    receiver: str = ""
    guards: frozenset[str] = frozenset()
    compounds: frozenset[str]
    wraps: frozenset[str] = frozenset()
    blocks: frozenset[str]
    clauses: frozenset[str] = frozenset()
    prefixes: frozenset[str] = frozenset()
    annotations: frozenset[str] = frozenset()
    packages: frozenset[str] = frozenset()
    imports: frozenset[str]
    importing: frozenset[str] = frozenset()
    between: frozenset[str] = frozenset()
    docstrings: bool = False
    binders: Mapping[str, str]
    bound: frozenset[str]
    opener: str = " {"
    selves: frozenset[str] = frozenset()
    anonymous_owners: frozenset[str] = frozenset()
    test_marks: str = ""
    facts: str
    modules: str
