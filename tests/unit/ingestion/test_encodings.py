"""ING-34: text in other encodings is read, and what is no text is not."""

from __future__ import annotations

import random
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.ingestion import write
from weft.domain.documents import Document, Rejection
from weft.ingestion.git.safe_files import UnreadableError
from weft.ingestion.sources.encodings import decoded
from weft.ingestion.sources.files import DECODED
from weft.ingestion.sources.sources import read_source
from weft.settings import load_settings

GERMAN = "Die Größe der Straße überprüfen. Die Änderung gilt für alle Vögel, auch für Möwen.\n" * 3
RUSSIAN = "Считать птиц каждое утро. Озеро находится рядом с деревней, птицы прилетают весной.\n" * 3
JAPANESE = "鳥の数を数える。毎日、朝に数えます。カモメは湖の近くに住んでいます。\n" * 3
POLISH = "Ptaki liczymy codziennie rano. Zażółć gęślą jaźń, mówi strażnik łąki.\n" * 3


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (GERMAN, "cp1252"),
        ("naïve café", "cp1252"),
        (POLISH, "cp1250"),
        (RUSSIAN, "koi8-r"),
        (RUSSIAN, "cp1251"),
        (JAPANESE, "shift_jis"),
        (JAPANESE, "euc_jp"),
        (JAPANESE, "gb18030"),
        (GERMAN, "utf-16"),
        (JAPANESE, "utf-16"),
        (GERMAN, "utf-16-le"),
        (GERMAN, "utf-16-be"),
        (GERMAN, "utf-32"),
    ],
)
def test_text_in_other_encodings_is_read(text: str, encoding: str) -> None:
    """ING-34: with a mark or without one; what was done to read it is told."""
    read, how = decoded(text.encode(encoding))
    assert read == text
    assert how is not None


@given(st.text().filter(lambda text: "\0" not in text and not text.startswith("\ufeff")))
def test_utf_8_is_read_as_it_is(text: str) -> None:
    """ING-34: without a note."""
    assert decoded(text.encode()) == (text, None)


def test_a_stray_zero_byte_is_replaced() -> None:
    """ING-34: of many, a file is no text."""
    text = "Count the gannets. " * 100
    assert decoded(f"{text}\0{text}".encode()) == (f"{text}\ufffd{text}", "UTF-8, zero bytes: 1")
    with pytest.raises(UnreadableError, match="zero byte"):
        decoded(f"{text}{chr(0) * 20}{text}".encode())


def test_a_stray_zero_byte_is_replaced_in_short_text_too() -> None:
    """ING-34: unless the rest is no text."""
    assert decoded(b"Station 4\0, April")[0] == "Station 4\ufffd, April"
    with pytest.raises(UnreadableError, match="zero byte"):
        decoded(b"GIF89a\1\2\0 and so on")


@pytest.mark.parametrize(
    ("data", "places"),
    [
        (GERMAN.encode() + "Grüße von Jörg\n".encode("cp1252"), 3),
        ("Übergabe am Möwenplatz, für alle".encode()[1:], 1),
        ("Die Übergabe der Schlüssel, für Möwen ö".encode()[:-1], 1),
        (("Count the gulls. It’s a café.\n" * 9).encode() + b"\xff\n", 1),
    ],
)
def test_a_few_spoiled_bytes_leave_utf_8_as_it_is(data: bytes, places: int) -> None:
    """ING-34: a line in another encoding, and letters that are cut at an end; what is spoiled is marked, and told."""
    assert decoded(data) == (data.decode("utf-8", "replace"), f"UTF-8, places that are no UTF-8: {places}")


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (
            "L'été dernier, nous avons mangé des crêpes à Noël chez ma grand-mère. Le garçon a déjà payé le café. "
            "Les élèves préfèrent la forêt près du château.",
            "cp1252",
        ),
        (
            "A reunião começa às três horas no salão. Não se esqueçam das chaves. O João trará o pão e o café; "
            "a manhã será fria, então tragam casacos.",
            "cp1252",
        ),
        ("La riunione è alle otto. Perché non porti il caffè? È già tutto pronto, però mancano le città.", "cp1252"),
        (
            "Toplantı günü saat sekizde. Anahtarları unutmayın. Ayşe çörek getirecek, İbrahim arabayı kullanacak. "
            "Kuşlar gölün kıyısında uçuyor.",
            "cp1254",
        ),
        ("A gémek a tó partján állnak. Nagyobb változtatások lehetségesek, de ellenőrizni kell őket.", "iso8859_2"),
        (POLISH * 2 + "Większe zmiany są możliwe, ale muszą zostać sprawdzone.", "iso8859_2"),
    ],
)
def test_the_language_tells_the_encoding_of_latin_letters(text: str, encoding: str) -> None:
    """ING-34: and Windows-1252 is taken where it does not."""
    assert decoded(text.encode(encoding)) == (text, encoding)


def test_what_is_no_text_is_refused() -> None:
    """ING-3: bytes by chance, compressed ones, programs, and half of a UTF-16 letter."""
    rng = random.Random(3)
    programs = [b"\x7fELF\2\1\1\0" + bytes(range(256)), rng.randbytes(4_000)]
    compressed = zlib.compress(rng.randbytes(3_000)).replace(b"\0", b"\1")
    for data in (*programs, compressed, b"\xff\xfea", b"\0a" * 50 + b"\xd8", b"\0\xff\0\xfe" * 100):
        with pytest.raises(UnreadableError):
            decoded(data)


def test_a_file_in_another_encoding_is_a_document_with_a_note(tree: Path) -> None:
    """ING-34: its text is what people read."""
    write(tree / "notes.txt", GERMAN.encode("latin-1"))
    note, document = read_source(tree, load_settings(environment={}).ingest, domain=None)
    assert isinstance(note, Rejection)
    assert isinstance(document, Document)
    assert (note.reason, note.detail) == (DECODED, "read as cp1252")
    assert document.text == GERMAN
