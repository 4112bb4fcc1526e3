"""Random trees with rules of all kinds, and what git lists of them."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

ATOMS = [
    b"a",
    b"b",
    b"c",
    b"ab",
    b"B",
    b".x",
    b"a b",
    b"#a",
    b"!b",
    b"a ",
    b"\\",
    b"*",
    b"[",
    b"\xff",
    b"\xc3\xa9",
    b"-",
]
ENDS = [b"", b"", b".h", b".md", b".keep.md", b"1"]
PIECES = [
    b"*",
    b"*",
    b"**",
    b"?",
    b"[a-c]",
    b"[!a]",
    b"[^b]",
    b"[[:alpha:]]",
    b"[[:upper:]-]",
    b"[]a]",
    b"[a",
    b"[a\\]",
    b"\\",
]
PIECES += [
    b"\\*",
    b"\\#",
    b"\\ ",
    b" ",
    b"\t",
    b"/",
    b"/",
    b"**/",
    b"/**",
    b"/**/",
    b"\\/",
    b"[/]",
    b"a",
    b"b",
    b"c",
    b".h",
    b".md",
    b"1",
]
PIECES += [
    b"***",
    b"[--a]",
    b"[a-]",
    b"[[:]",
    b"[[:x:]]",
    b"[b-a]",
    b"\xc3\xa9",
    b"[\xa9]",
    b"B",
    b"-",
    b"\\B",
    b"[B]",
    b"[A-C]",
]
LINE_ENDS = [b"\n"] * 12 + [
    b"\r\n",
    b"\r\r\n",
    b" \n",
    b"  \r\n",
    b"\t\n",
    b"\0c\n",
    b"\xe2\x80\xa8a\n",
    b"\x0c\n",
    b"\xc2\x85\n",
    b"\r",
]
USUAL = [
    b"*",
    b"!*/",
    b"!*.h",
    b"/*",
    b"!/a",
    b"*.md",
    b"!*.keep.md",
    b"a/",
    b"!a/",
    b"a/**",
    b"!a/**/",
    b"!a/**/*.md",
    b"**/b",
    b"b/**",
    b"/a/b",
]
USUAL += [
    b"#a",
    b"\\#a",
    b"!\\!b",
    b"a/*",
    b"!a/b",
    b"a/**/b",
    b"*/",
    b"!",
    b"/",
    b"//",
    b"a//",
    b"**",
    b"**/",
    b"*.*",
    b".*",
    b"!.gitignore",
]


class TreeMaker:
    """Makes a tree that a number decides."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def name(self) -> bytes:
        return self.chance.choice(ATOMS) + self.chance.choice(ENDS)

    def rule(self) -> bytes:
        if self.chance.random() < 0.5:
            return self.chance.choice(USUAL)
        start = self.chance.choice([b"", b"", b"!", b"/", b"!/", b"**/"])
        made = start + b"".join(self.chance.choice(PIECES) for _ in range(self.chance.randint(1, 4)))
        return made + self.chance.choice([b"", b"", b"/"])

    def rules(self) -> bytes:
        lines = (self.rule() + self.chance.choice(LINE_ENDS) for _ in range(self.chance.randint(1, 5)))
        return self.chance.choice([b"", b"", b"", b"\xef\xbb\xbf"]) + b"".join(lines)

    def fill(self, folder: bytes, depth: int = 0) -> None:
        Path(os.fsdecode(folder)).mkdir(exist_ok=True)
        names = {name.lower(): name for name in (self.name() for _ in range(self.chance.randint(1, 6)))}
        for name in names.values():
            path = Path(os.fsdecode(folder + b"/" + name))
            kind = self.chance.random()
            if depth < 3 and kind < 0.45:
                self.fill(bytes(path), depth + 1)
            elif kind < 0.5:
                path.symlink_to(self.chance.choice(["a", "..", "nowhere"]))
            else:
                path.write_bytes(b"text\n")
        if self.chance.random() < (0.9 if depth == 0 else 0.3):
            Path(os.fsdecode(folder + b"/.gitignore")).write_bytes(self.rules())


def git(folder: Path, *arguments: str | bytes) -> bytes:
    """What git prints."""
    identity = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "protocol.file.allow=always")
    command = ["git", "-c", "safe.directory=*", *identity, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True).stdout


def files_below(folder: Path) -> list[bytes]:
    """All files and links, as paths from a folder."""
    paths = (path for path in folder.rglob("*") if path.is_symlink() or path.is_file())
    return sorted(bytes(path.relative_to(folder)) for path in paths if ".git" not in path.parts)


def random_repository(top: Path, seed: int) -> None:
    """A repository with rules at all levels, some of its files tracked, some of those gone."""
    maker = TreeMaker(seed)
    maker.fill(os.fsencode(top))
    git(top, "init", "-q", "--template=")
    if maker.chance.random() < 0.4:
        (top / ".git" / "info").mkdir()
        (top / ".git" / "info" / "exclude").write_bytes(maker.rules())
    if maker.chance.random() < 0.3:
        (top / "rules").write_bytes(maker.rules())
        git(top, "config", "core.excludesFile", str(top / "rules"))
    if maker.chance.random() < 0.2:
        git(top, "config", "core.ignoreCase", "true")
    if maker.chance.random() < 0.2:
        git(top, "config", "index.version", "4")
    if maker.chance.random() < 0.2:
        git(top, "config", "core.splitIndex", "true")
    files = files_below(top)
    tracked = maker.chance.sample(files, min(len(files), maker.chance.choice([0, 0, 1, 3])))
    if tracked:
        git(top, "--literal-pathspecs", "add", "-f", "--", *tracked)
        if maker.chance.random() < 0.3:
            git(top, "--literal-pathspecs", "rm", "-q", "--cached", "--", tracked[0])
        if maker.chance.random() < 0.2:
            (top / os.fsdecode(tracked[-1])).unlink()


def listed_by_git(folder: Path) -> set[bytes]:
    """Files that are there of those that git takes for the project's."""
    printed = git(folder, "ls-files", "-co", "--exclude-standard", "-z")
    paths = {path for path in printed.split(b"\0") if path}
    return {path for path in paths if os.path.lexists(os.fsencode(folder) + b"/" + path)}
