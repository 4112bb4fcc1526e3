"""Counting in the encoder's own tokens, without loading the encoder; the one importer of tokenizers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Encoding, Tokenizer

from weft.domain.errors import ConfigurationError, ModelUnavailableError
from weft.embedding.models import input_of, locate
from weft.embedding.settings import EmbeddingSettings

_UNITS = re.compile(r"[A-Za-z0-9]+|[!-/:-@\[-`{-~]")
_OTHER = re.compile(r"[^\t\n\r -~]")
_MOST_WORDS = 200_000  # remembered; a source that has more distinct ones is no language


class WordCounts:
    """Number of tokens of texts in printable ASCII, by a tokenizer that splits at blanks and punctuation.

    BERT's tokenizers do: each mark is a token, and a word's tokens are its own. Other texts are not counted here.
    """

    def __init__(self, special: list[str], count: Callable[[str], int]) -> None:
        self._special = re.compile("|".join(map(re.escape, special))) if special else None
        self._counted = _Counted(count)

    def count(self, text: str) -> int | None:
        """Number of tokens, or None where only the tokenizer itself can tell."""
        if _OTHER.search(text) or (self._special is not None and self._special.search(text)):
            return None
        if len(self._counted) > _MOST_WORDS:
            self._counted.clear()
        return sum(map(self._counted.__getitem__, _UNITS.findall(text)))


def splits_at_words(definition: str) -> bool:
    """Whether a tokenizer, given as the text of its `tokenizer.json`, is one that `WordCounts` counts for."""
    parts: dict[str, Any] = json.loads(definition)
    kinds = [(parts.get(name) or {}).get("type") for name in ("normalizer", "pre_tokenizer", "model")]
    return kinds == ["BertNormalizer", "BertPreTokenizer", "WordPiece"]


class _Counted(dict[str, int]):
    def __init__(self, count: Callable[[str], int]) -> None:
        super().__init__()
        self._count = count

    def __missing__(self, word: str) -> int:
        self[word] = count = self._count(word)
        return count


_LEAST_LIMIT = 2  # tokens of its own that a content has room for
_WORD_MARKS = "\u2581\u0120"  # what tokenizers of bytes and of sentence pieces put before the first piece of a word


class TokenCounter:
    """Length of a text in the encoder's own tokens, special tokens not counted."""

    def __init__(self, folder: Path, max_tokens: int, prompt: str = "") -> None:
        """Read the tokenizer of a folder; its window also holds special tokens and the prompt of contents."""
        self._tokenizer = read_tokenizer(folder)
        self.limit = max_tokens - self._tokenizer.num_special_tokens_to_add(is_pair=False) - self._exactly(prompt)
        if self.limit < _LEAST_LIMIT:
            raise ConfigurationError(
                f"embedding.document_prompt: expected one that leaves room in a window of {max_tokens} tokens, found "
                f"{prompt!r}: shorten it, or set embedding.max_tokens"
            )
        special = [str(token) for token in self._tokenizer.get_added_tokens_decoder().values()]
        self._words = WordCounts(special, self._exactly) if splits_at_words(self._tokenizer.to_str()) else None

    def cut(self, text: str, tokens: int) -> str:
        """The beginning of a text, `tokens` tokens of it at most."""
        encoded = self._tokenizer.encode(encodable(text), add_special_tokens=False)
        return text if len(encoded.ids) <= tokens else text[: encoded.offsets[tokens - 1][1]]

    def words(self) -> list[str]:
        """The vocabulary's entries that are words or begin one, in alphabetical order."""
        return sorted(word for entry in self._tokenizer.get_vocab() if (word := entry.lstrip(_WORD_MARKS)).isalpha())

    def __call__(self, text: str) -> int:
        """Length of a text in tokens; of any text, however long."""
        by_words = None if self._words is None else self._words.count(text)
        return self._exactly(text) if by_words is None else by_words

    def _exactly(self, text: str) -> int:
        return len(self._tokenizer.encode_batch_fast([encodable(text)], add_special_tokens=False)[0].ids)


@dataclass(frozen=True, slots=True)
class TokenIds:
    """A text as the encoder reads it."""

    ids: list[int]  # its tokens, special ones included; at least one
    own: list[int]  # positions of those that stand for the text itself


class TokenReader:
    """Texts to token ids, special tokens included, cut to the encoder's window; a prompt stands before each text."""

    def __init__(self, folder: Path, max_tokens: int, pad: int, prompt: str = "") -> None:
        self._tokenizer = read_tokenizer(folder)
        self._tokenizer.enable_truncation(max_tokens)
        self._pad = pad
        self._prompt = encodable(prompt)
        # Tokens up to the prompt's last one, special ones before it included; some models leave them out of a vector.
        self.prompt_tokens = 1 + max(self._places(self._tokenizer.encode(self._prompt)), default=-1)

    @property
    def special(self) -> list[int]:
        """Ids that stand for no text of their own: those of the beginning, the end, what is unknown and the like."""
        return [number for number, token in self._tokenizer.get_added_tokens_decoder().items() if token.special]

    def __call__(self, texts: Sequence[str]) -> list[TokenIds]:
        """Token ids of texts, in their order."""
        # A tokenizer without special tokens finds nothing in an empty text; one token stands for it.
        return [
            TokenIds(encoded.ids or [self._pad], self._own(encoded))
            for encoded in self._tokenizer.encode_batch([self._prompt + encodable(text) for text in texts])
        ]

    def _own(self, encoded: Encoding) -> list[int]:
        own = self._places(encoded)
        if self._prompt:
            ends = [end for _, end in encoded.offsets]
            own = [at for at in own if ends[at] > len(self._prompt)]
        return own

    @staticmethod
    def _places(encoded: Encoding) -> list[int]:
        return [at for at, special in enumerate(encoded.special_tokens_mask) if not special]


@dataclass(frozen=True, slots=True)
class PairIds:
    """Two texts as a cross-encoder reads them: their tokens, and for each token which of the two it belongs to."""

    ids: list[int]
    types: list[int]

    def cut(self, longest: int) -> PairIds:
        """At most so many tokens, at least two: its last one, which ends a pair, stays the last."""
        if len(self.ids) <= longest:
            return self
        return PairIds([*self.ids[: longest - 1], self.ids[-1]], [*self.types[: longest - 1], self.types[-1]])


class PairReader:
    """Pairs of texts to token ids, special tokens included, the longer text cut first to fit the window."""

    def __init__(self, folder: Path, max_tokens: int, most_tokens: int) -> None:
        """Read the tokenizer of a folder."""
        self._tokenizer = read_tokenizer(folder)
        self._tokenizer.enable_truncation(max_tokens, strategy="longest_first")
        self._most = most_tokens

    def __call__(self, query: str, texts: Sequence[str]) -> list[PairIds]:
        """Token ids of each text behind the query, in their order."""
        both = [(encodable(query), encodable(text)) for text in texts]
        pairs = [PairIds(encoded.ids, encoded.type_ids) for encoded in self._tokenizer.encode_batch(both)]
        longest = level([len(pair.ids) for pair in pairs], self._most)
        return [pair.cut(max(longest, 2)) for pair in pairs]


def level(lengths: Sequence[int], most: int) -> int:
    """The greatest length to which the longest of some texts can be cut so that all together have at most `most`."""
    left = most
    for shorter, length in enumerate(sorted(lengths)):
        share = left // (len(lengths) - shorter)
        if length > share:
            return share
        left -= length
    return max(lengths, default=0)


def load_token_counter(settings: EmbeddingSettings) -> TokenCounter:
    """The token counter of the configured encoder: what chunking measures with."""
    folder = locate(settings)
    given = input_of(folder, settings)
    return TokenCounter(folder, given.window, given.document_prompt)


def read_tokenizer(folder: Path) -> Tokenizer:
    """A model's tokenizer, neither truncating nor padding."""
    file = folder / "tokenizer.json"
    try:
        tokenizer = Tokenizer.from_str(file.read_text(encoding="utf-8"))
    except Exception as error:  # the library raises bare Exception for a malformed file
        raise ModelUnavailableError(f"embedding.model: expected a tokenizer at {file}, found: {error}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def encodable(text: str) -> str:
    r"""The text with lone surrogates, which no tokenizer takes, as question marks.

    Examples:
        >>> encodable("a\ud800")
        'a?'
    """
    return text.encode("utf-8", "replace").decode("utf-8")
