"""ING-9: files, keys, nested objects, and the units of known schemas. ING-14: what configuration points to."""

import json
from dataclasses import replace

import pytest

from weft.chunking.chunker import chunk_document
from weft.chunking.config.file import NOTATIONS, entries_of
from weft.chunking.config.outline import Entry
from weft.chunking.units.splitting import ChunkSizes
from weft.domain.chunks import Chunk
from weft.domain.documents import ContentType, Document, Domain
from weft.ingestion.sources.files import kind_of

SIZES = ChunkSizes(max_tokens=400, target_tokens=60, min_tokens=4, overlap_tokens=6, whole_tokens=12, nested_tokens=10)


def words(text: str) -> int:
    return len(text.split())


def chunks_of(text: str, language: str, name: str = "a", sizes: ChunkSizes = SIZES) -> list[Chunk]:
    document = Document(
        uri=f"tree/{name}",
        content_type=ContentType.CONFIGURATION,
        domain=Domain.CODE,
        text=text,
        language=language,
        trust_level=100,
    )
    return chunk_document(document, sizes, words)


def symbols(chunks: list[Chunk], kind: str) -> list[str | None]:
    return [chunk.symbol for chunk in chunks if chunk.kind == kind]


def links(chunks: list[Chunk], kind: str) -> set[str]:
    return {link.target for chunk in chunks for link in chunk.links if link.kind == kind}


LONG = " ".join(["word"] * 12)


def test_a_short_file_stays_whole() -> None:
    """ING-9: below the limit, on level 0."""
    (chunk,) = chunks_of('{"a": 1, "b": {"c": 2}}', "json")
    assert (chunk.level, chunk.kind, chunk.defines) == (0, "file", ("a", "b"))


def test_keys_and_long_objects_in_json() -> None:
    """ING-9: short keys together, a long object apart under the path of its keys, comments with the key below."""
    text = f"""{{
  // Who.
  "name": "x", "version": 1,
  // How.
  "tool": {{
    "short": true,
    // Deep.
    "long": {{"text": "{LONG}"}},
    "last": 0
  }}
}}
"""
    chunks = chunks_of(text, "json")
    assert [(chunk.level, chunk.kind, chunk.symbol) for chunk in chunks] == [
        (0, "file", None),
        (1, "keys", None),
        (1, "key", "tool"),
        (2, "key", "tool.long"),
        (2, "keys", "tool"),
    ]
    file, short, tool, deep, _ = chunks
    assert file.text.startswith("name, version, tool\n")
    assert short.text.lstrip().startswith("// Who.")
    assert tool.text.startswith("tool: short, long, last\n  // How.")
    assert deep.text.startswith("tool\n    // Deep.")
    assert deep.heading_path == ("tool", "long")
    assert deep.parent_id == tool.chunk_id
    assert tool.parent_id == file.chunk_id


def test_package_json_has_units_for_scripts_and_dependencies() -> None:
    """ING-9, ING-14: each is a chunk however short, and dependencies are imports."""
    value = {"name": "x", "scripts": {"b": "tsc ./a/b.ts"}, "dependencies": {"react": "1"}, "files": LONG.split()}
    chunks = chunks_of(json.dumps(value, indent=1), "json", "package.json")
    assert {"scripts", "dependencies"} <= set(symbols(chunks, "key"))
    assert links(chunks, "imports") == {"react"}
    assert "a/b.ts" in links(chunks, "references")
    assert chunks[0].attributes == {"schema": "package"}


def test_yaml_by_indentation() -> None:
    """ING-9: lists at the key's own indentation, blocks of text, quoted and bracketed values over lines."""
    text = f"""# First.
one:
- name: a
- name: b
two: |
  three: {LONG}
  # no comment
four: "x
  five: y"
six: {{a: 1,
 seven: 2}}
"""
    chunks = chunks_of(text, "yaml")
    assert [name for chunk in chunks for name in chunk.defines if chunk.level] == ["one", "two", "four", "six"]
    two = next(chunk for chunk in chunks if chunk.symbol == "two")
    assert two.text.endswith("# no comment")


def test_a_yaml_file_in_braces_has_its_keys() -> None:
    """ING-9: on one line, with what is said of nodes, after comments; a large object is a unit of its own."""
    text = f"# First.\n---\n{{a: &x 1, 'b': {{c: nginx:1.2, d: {LONG}}}, e: [f: 1, g], \"h\":*x}}  # last\n"
    chunks = chunks_of(text, "yaml")
    assert {name for chunk in chunks for name in chunk.defines} >= {"a", "b", "e", "h"}
    assert "b" in [chunk.symbol for chunk in chunks]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("{{ if .Values.a }}\nb: 1\n", ["b"]),
        ("{% set a %}\nb: 1\n", ["b"]),
        ("{a: 1}: c\nb: 1\n", ["{a: 1}", "b"]),
        ("{a: 1}\n---\nb: 1\n", ["", ""]),
        ("{a: 1, b: 2", []),
        ("{}\n", []),
    ],
)
def test_what_only_begins_with_a_brace_is_read_by_its_lines(text: str, keys: list[str]) -> None:
    """ING-9: templates, several documents, and what is ill-formed."""
    assert [entry.key for entry in entries_of("a.yaml", "yaml", text.encode())[1]] == keys


def test_a_brace_that_never_ends_costs_what_its_size_costs() -> None:
    """ING-9: what was read again from each place would not end within the life of a test."""
    for text in ("{" * 100_000, "[" * 100_000, "{a: '" + "''" * 50_000, "{a: " + ": " * 50_000, "\n" * 100_000 + "{"):
        for language in ("yaml", "json", "toml"):
            assert isinstance(entries_of("a", language, text.encode())[1], list)


@pytest.mark.parametrize(
    ("value", "starts"),
    [
        ('\n  "b: b\n  c: c"', []),
        ("\n  b c\n  - d 'e", []),
        (" !t &u 'b\n  c: c'", []),
        ("\n- - |\n    b: b\n  - c", ["- - |", "- - |", "  - c"]),
        ("\n- - b\n    - c d\n  - e", ["- - b", "- - b", "  - e"]),
    ],
)
def test_what_a_value_goes_on_with_is_no_key(value: str, starts: list[str]) -> None:
    """ING-9: below its key, after properties, or as deep as the dash that it stands behind."""
    text = f"a:{value}\nz: 0\n"
    entries = entries_of("a.yaml", "yaml", text.encode())[1]
    assert [entry.key for entry in entries] == ["a", "z"]
    assert [text[entry.at :].partition("\n")[0] for entry in below(entries[0])] == starts


def below(entry: Entry) -> list[Entry]:
    return [found for child in entry.children for found in (child, *below(child))]


def test_a_comment_that_goes_on_belongs_to_the_key_above() -> None:
    """ING-9: by its column; one in the key's own column belongs to the key below."""
    text = f"one: {LONG}  # says\n       # more\n# on two\ntwo: {LONG}\n"
    one, two = (chunk for chunk in chunks_of(text, "yaml") if chunk.level == 1)
    assert one.text.endswith("# more")
    assert two.text.startswith("# on two")


@pytest.mark.parametrize("first", [f"one: {LONG}\n", f"one: {LONG}\n---\ntwo: {LONG}\n"])
def test_a_last_document_without_keys_is_told_with_the_one_before(first: str) -> None:
    """ING-13: a text alone is no key, and in a chunk all the same."""
    chunks = chunks_of(f"{first}---\nno key at all\n", "yaml")
    assert chunks[-1].text.endswith("no key at all")


def keys_below(entries: list[Entry]) -> dict[str, object]:
    return {entry.key: keys_below(entry.children) for entry in entries}


def test_templates_are_no_errors() -> None:
    """ING-9: on lines of their own, in values and in keys; the keys around them keep their places."""
    text = """{{- if and .Values.a
  .Values.b }}
a:
  b:
  {{- range .Values.c }}
  - name: {{ .name }}
    {{ .key }}: "{{ .value }}"
  {{- end }}
  # On d.
  d: {% if e %}1{% endif %}
{{- end }}
"""
    (a,) = entries_of("a.yaml", "yaml", text.encode())[1]
    assert keys_below([a]) == {"a": {"b": {"{{ .name }}": {"name": {}, "{{ .key }}": {}}}, "d": {}}}
    assert text[a.children[1].start :].startswith("  # On d.\n  d:")


@pytest.mark.parametrize(
    ("language", "text", "keys"),
    [
        ("yaml", "a:\n  b: 1\n  c: [\n'd e': 'f: g\nh: 2\n", {"a": {"b": {}, "c": {}}, "d e": {}, "h": {}}),
        ("yaml", "a:\n  - b: |\n      c: 1\n    d: 2\n  - e: {\n  f: 3\n", {"a": {"b": {}, "d": {}, "e": {}, "f": {}}}),
        ("yaml", "a:\n\tb: 1\n---\nc: @d\n", {"a": {}, "": {"c": {}}}),
        ("toml", "a = 1\n[b]\nc = \n[d.e]\nf = 'g'\n", {"a": {}, "b": {"c": {}}, "d.e": {"f": {}}}),
        (
            "json",
            '{"a": {"b": 1,, "c": x}, // d\n "e": [{"f": 1,},], }',
            {"a": {"b": {}}, "e": {"0": {"f": {}}}},
        ),
        ("dockerfile", "FROM a AS b\nCOPY --link --from=c d e\n  --x\nRUN e\n", {"b": {"COPY": {}, "RUN": {}}}),
    ],
)
def test_a_file_with_errors_has_the_keys_that_are_sure(language: str, text: str, keys: dict[str, object]) -> None:
    """ING-9: those that lines tell; of JSON all outside of the error."""
    assert keys_below(entries_of("a", language, text.encode())[1]) == keys


@pytest.mark.parametrize("text", ['{"a\\ud800": "\\udc00", "b": {"c": 1}}', '{"a\ud800": "\udc00", "b": {"c": 1}}'])
@pytest.mark.parametrize("language", ["json", "yaml"])
def test_halves_of_surrogate_pairs_are_no_errors(text: str, language: str) -> None:
    """ING-9, ING-34: as escapes, which JavaScript writes, and as what another program made of them."""
    chunks = chunks_of(f"{text}\n", language, sizes=replace(SIZES, whole_tokens=1, target_tokens=4, overlap_tokens=0))
    assert {name for chunk in chunks for name in chunk.defines} == {text[2 : text.index('":')], "b"}


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"{' ' * level}a:\n" for level in range(300)),
        "".join(f"{' ' * level}-\n" for level in range(300)),
        "".join(f"{' ' * level}a:\n{' ' * level}-\n" for level in range(150)),
        f"{'- ' * 300}a\n",
        f"{'? ' * 300}a\n",
    ],
)
def test_what_the_grammar_of_yaml_would_crash_on_is_read_by_lines(text: str) -> None:
    """ING-3: blocks in 254 and more levels end the process."""
    chunks = chunks_of(f"top: 1\n{text}", "yaml")
    assert chunks[-1].end_byte == len(text) + len("top: 1\n")


def test_lines_may_end_with_a_carriage_return() -> None:
    """ING-40: in each notation the keys are the same."""
    for language, text in {
        "dockerfile": "# A\nFROM a AS b\nRUN c \\\n  d\n\nRUN e\n",
        "yaml": "# A\na:\n  - b: |\n      c\n    d: 'e\n      f'\n",
        "toml": '# A\n[a]\nb = """\nc\n"""\nd = [\n 1,\n]\n',
        "json": '{\n  // A\n  "a": [\n    {"b": 1},\n  ]\n}\n',
        "ini": "; A\n[a]\nb\nc = d\n  e\n",
    }.items():
        both = [entries_of("a", language, each.encode())[1] for each in (text, text.replace("\n", "\r\n"))]
        assert keys_below(both[0]) == keys_below(both[1]), language


def test_compose_services_are_units() -> None:
    """ING-9, ING-14: each service with the comment above it; images and files are references."""
    text = f"""services:
  # The web.
  web:
    image: nginx:1.25
    volumes: ["./site/index.html:/x"]
  db:
    image: postgres
x-note: {LONG}
"""
    chunks = chunks_of(text, "yaml", "docker-compose.yml", replace(SIZES, min_tokens=0))
    assert symbols(chunks, "key") == ["services", "services.web", "services.db", "x-note"]
    web = next(chunk for chunk in chunks if chunk.symbol == "services.web")
    assert web.text.startswith("services\n  # The web.\n")
    assert web.level == 2
    assert links([web], "references") == {"nginx:1.25", "site/index.html"}


def test_kubernetes_documents_are_units() -> None:
    """ING-9: named by kind and name; a rule in a block of text ends no document."""
    text = f"""# The web.
apiVersion: apps/v1
kind: Deployment
metadata:
  labels: {{a: b}}
  name: web
spec: {{template: {{image: a/b:1}}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{x: y}}
data:
  z: |
    ---
    {LONG}
"""
    chunks = chunks_of(text, "yaml")
    assert symbols(chunks, "resource") == ["Deployment/web", "ConfigMap"]
    assert chunks[1].attributes == {"schema": "kubernetes"}


def test_dockerfile_stages_are_units() -> None:
    """ING-9, ING-14: a command over lines and a here-document begin no stage; images and copied files are linked."""
    text = f"""ARG V=1
# Build.
FROM golang:1.22 AS build
COPY go.mod src/ ./
RUN a && \\
FROM-like
RUN <<EOF
FROM not
EOF
FROM build AS test
RUN {LONG}
FROM alpine
COPY --from=build /a /b
"""
    chunks = chunks_of(text, "dockerfile", "Dockerfile", replace(SIZES, min_tokens=0))
    assert symbols(chunks, "stage") == ["build", "test", "alpine"]
    assert next(chunk for chunk in chunks if chunk.symbol == "build").text.startswith("# Build.\nFROM")
    assert links(chunks, "references") == {"golang:1.22", "alpine", "go.mod", "src/"}


def test_go_modules_and_requirements() -> None:
    """ING-9, ING-14: blocks of directives; requirements are imports."""
    text = f"module example.com/a\n\nrequire (\n\tx.org/b v1\n\tx.org/c v2 // {LONG}\n)\n// Ours.\nreplace x => ../x\n"
    chunks = chunks_of(text, "gomod", "go.mod")
    assert symbols(chunks, "block") == ["require"]
    assert links(chunks, "imports") == {"x.org/b", "x.org/c"}
    pins = "".join(f"package-{number}==1.{number}  # why\n" for number in range(8))
    assert links(chunks_of(pins, "requirements"), "imports") == {f"package-{number}" for number in range(8)}


def test_pyproject_tables_are_units() -> None:
    """ING-9, ING-14: brackets inside values begin no table; dependencies are imports."""
    text = f'''[project]
name = "x"
dependencies = [
  "numpy>=2",
  "ray[default]",
]
# How.
[tool.ruff]
a = """
[not.one]
{LONG}
"""
[[tool.mypy.overrides]]
module = "m"
'''
    chunks = chunks_of(text, "toml", "pyproject.toml")
    assert symbols(chunks, "table") == ["project", "tool.ruff", "tool.mypy.overrides"]
    assert links(chunks, "imports") == {"numpy", "ray"}
    assert next(chunk for chunk in chunks if chunk.symbol == "tool.ruff").text.startswith("# How.")


def test_sections_of_ini_files() -> None:
    """ING-9: sections with the comments above them."""
    chunks = chunks_of(f"; top\nx = 1\n[a]\nk: v\n\n# on b\n[b]\nl = {LONG}\n", "ini")
    assert [name for chunk in chunks for name in chunk.defines if chunk.level] == ["x", "a", "b"]


def test_values_of_ini_go_on_further_to_the_right() -> None:
    """ING-9: comments and what looks like a section, too; keys may stand to the right of their section."""
    text = (
        "[a]\n\tk = v\n\t  [b]\n\t  # on k\n\t# on l\n\tl = w\n[c]\nm =\n  [d]\n  ; on m\n\n  e: f\n# on n\nn\\:o = p\n"
    )
    found = [
        (text[entry.start : entry.end], entry.key)
        for top in entries_of("a.ini", "ini", text.encode())[1]
        for entry in below(top)
    ]
    assert found == [
        ("\tk = v\n\t  [b]\n\t  # on k\n", "k"),
        ("\t# on l\n\tl = w\n", "l"),
        ("m =\n  [d]\n  ; on m\n\n  e: f\n", "m"),
        ("# on n\nn\\:o = p\n", "n:o"),
    ]


def test_what_has_no_sections_has_no_keys_that_are_indented() -> None:
    """ING-9: nginx's notation is none of keys and values."""
    assert entries_of("a.ini", "ini", b"server {\n    listen 80;\n    proxy_pass http://a:80;\n}\n")[1] == []


@pytest.mark.parametrize("language", sorted(NOTATIONS))
@pytest.mark.parametrize(
    "unit",
    [
        "[",
        "{",
        '{"a":',
        "a: ",
        "- ",
        "&a [*a, *a]\n",
        '"',
        "'",
        "a:\n",
        "x = [\n",
        "[a]\n",
        "(",
        "<<A\n",
        "\\\n",
        "a: |\n",
        "#\n",
        f"a{' .' * 30}\n",
    ],
)
def test_hostile_repetition_costs_little(language: str, unit: str) -> None:
    """ING-3, ING-9: brackets without end, aliases, open quotes: no recursion, no expansion, linear time."""
    text = unit * (20_000 // len(unit))
    chunks = chunks_of(text, language, sizes=ChunkSizes(400, 300, 30, 20, whole_tokens=200, nested_tokens=100))
    assert chunks[-1].end_byte == len(text)


REDIS = "# Example\n\nbind 127.0.0.1 -::1\n\n" + "".join(
    f"# How long a {bird} may wait for its answer, in seconds.\n{bird}-timeout {number}\n\n"
    for number, bird in enumerate(("pelican", "heron", "stork", "ibis"))
)
HTTPD = 'ServerRoot "/srv"\nSetEnvIf Host "^x" a=b\n' + "".join(
    f"# The site of the {bird}\n<VirtualHost *:80>\n  ServerName {bird}.example\n  <Directory /srv/{bird}>\n"
    "    Require all granted\n  </Directory>\n</VirtualHost>\n"
    for bird in ("pelican", "heron", "stork")
)
NGINX = "http {\n  if ($a = b) { return 403; }\n" + "".join(
    f"  server {{\n    listen 80;\n    server_name {bird}.example;\n    location / {{\n     root /srv/{bird};\n    }}\n"
    "  }\n"
    for bird in ("pelican", "heron", "stork")
)
HAPROXY = "global\n    daemon\n    maxconn 256\n\n" + "".join(
    f"frontend {bird}\n    bind *:80\n    default_backend {bird}s\n    timeout client 30s\n\n"
    for bird in ("heron", "ibis")
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (REDIS, ["bind", "pelican-timeout", "heron-timeout", "stork-timeout", "ibis-timeout"]),
        (HTTPD, ["ServerRoot", "<VirtualHost *:80>", "<VirtualHost *:80>", "<VirtualHost *:80>"]),
        (NGINX + "}\n", ["http.server", "http.server", "http.server"]),
        (HAPROXY, ["global", "frontend heron", "frontend ibis"]),
    ],
    ids=["redis", "httpd", "nginx", "haproxy"],
)
def test_directives_and_blocks_are_units(text: str, expected: list[str]) -> None:
    """ING-9: a comment goes with what stands below it, and nothing is shown that does not stand in the file."""
    assert kind_of("a.conf", text).language == "directives"
    sizes = replace(SIZES, target_tokens=30)
    chunks = chunks_of(text, "directives", sizes=sizes)
    assert [chunk.symbol for chunk in chunks if chunk.symbol in expected] == expected
    for chunk in chunks:
        assert chunk.text.count("# The site of") <= 1
        assert chunk.text.count("# How long") <= 1
        own = chunk.text.split("\n")[-1]
        assert own in text


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("[mysqld]\nport = 1\nskip-name-resolve\n", "ini"),
        ("# a b\nlisten_addresses = '*'\nport: 5\n", "ini"),
        ("a.b=c d\ne = f g h\n", "ini"),
        ("passwd:  files systemd\nhosts:  files dns\n", "ini"),
        ('<?xml version="1.0"?>\n<a/>\n', "xml"),
        ("Host *\n    SendEnv LANG\n    HashKnownHosts yes\n", "directives"),
    ],
)
def test_a_notation_is_told_by_most_of_its_lines(text: str, language: str) -> None:
    """ING-1: one colon makes no key of a whole file."""
    assert kind_of("x.cnf", text).language == language


def test_a_setting_that_is_commented_out_is_named() -> None:
    """ING-9: what stands between blank lines, and is not in force."""
    text = "port 1\n\n" + "# One of two.\n# Another line.\n# maxclients 10000\n\n" + "# More " * 12 + "\nport2 2\n"
    chunks = chunks_of(text, "directives")
    assert "maxclients" in {name for chunk in chunks for name in chunk.defines}


def test_special_targets_of_make_go_with_the_rule_below() -> None:
    """ING-9: `.PHONY` is no rule that anybody looks for."""
    rules = "".join(
        f".PHONY: {name}\n# Makes {name}.\n{name}: a b c\n\techo {name} {LONG}\n\n" for name in ("all", "clean")
    )
    chunks = chunks_of(f"CC = gcc\n\n{rules}", "make", "Makefile")
    assert [chunk.symbol for chunk in chunks][-2:] == ["all", "clean"]
    assert chunks[-1].text.startswith(".PHONY: clean\n# Makes clean.\nclean:")
    assert ".PHONY" not in {name for chunk in chunks for name in chunk.defines}
