"""Attribution where an answer and its response are both at hand: texts in, what an event carries of it out (FBK-9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Self

import msgspec
import numpy as np

from weft.domain.arrays import Floats
from weft.domain.events import Attribution
from weft.domain.ids import ContentHash
from weft.domain.ranking import Answer
from weft.embedding.settings import EmbeddingSettings
from weft.feedback.events.attribution import Method, Views, attribute, sentences_of
from weft.feedback.settings import AttributionSettings
from weft.indexes.chunk_store import ChunkStore

if TYPE_CHECKING:
    from weft.embedding.encoders.encoder import Encoder


_HELD = 4_096  # vectors of contents


class EncoderSimilarities:
    """Similarities by the vectors that search compares with. Many responses share contents: their vectors are held."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._held: dict[str, Floats] = {}

    def between(self, left: Sequence[str], right: Sequence[str]) -> Floats:
        """Cosines of all pairs, float64 (left, right); the same bits for the same pair always."""
        held = {text: self._held.pop(text, None) for text in dict.fromkeys(right)}
        missing = [text for text, vector in held.items() if vector is None]
        vectors = self._encoder.encode([*left, *missing]).astype(np.float64)
        held |= dict(zip(missing, vectors[len(left) :], strict=True))
        by_text = {text: vector for text, vector in held.items() if vector is not None}
        self._held |= by_text  # the ones used last stand last
        for oldest in list(self._held)[: max(0, len(self._held) - _HELD)]:
            del self._held[oldest]
        return np.asarray(vectors[: len(left)] @ np.stack([by_text[text] for text in right]).T)


class Attributor:
    """Attributes responses to the contents they were made from."""

    def __init__(self, rules: AttributionSettings, similarities: EncoderSimilarities | None) -> None:
        self._rules = rules
        self._similarities = similarities

    @classmethod
    def load(cls, rules: AttributionSettings, embedding: EmbeddingSettings) -> Self:
        """An attributor with the configured encoder, if `rules` ask for one, and without similarities otherwise."""
        if not rules.encoder:
            return cls(rules, None)
        # PyTorch takes a second to import, and an updater may meet no response.
        from weft.embedding.encoders.encoder import load_encoder  # noqa: PLC0415

        return cls(rules, EncoderSimilarities(load_encoder(embedding)))

    def of_answer(
        self, answer: Answer, response: str | None, attention: Mapping[ContentHash, float] | None = None
    ) -> Attribution | None:
        """Shares of an answer's results in a response that was made from them; see `attribution`."""
        return self.attribution({each.content_hash: each.text for each in answer.results}, response, attention)

    def attribution(
        self,
        contents: Mapping[ContentHash, str | None],
        response: str | None,  # what was made from them
        attention: Mapping[ContentHash, float] | None = None,
    ) -> Attribution | None:
        """Shares of the contents in a response; None where there is nothing to tell them apart by."""
        hashes = list(contents)
        looked_at = None if attention is None else np.array([attention.get(each, 0.0) for each in hashes])
        semantic, support = self._compared([contents[each] for each in hashes], response or "")
        attributed = attribute(1.0, len(hashes), Views(semantic, looked_at, support), self._rules)
        if attributed.method is Method.EQUAL or not hashes:
            return None
        shares = {each: float(share) for each, share in zip(hashes, attributed.values, strict=True)}
        return msgspec.convert({"method": attributed.method.value, "shares": shares}, Attribution)

    def _compared(self, texts: Sequence[str | None], response: str) -> tuple[Floats | None, Floats | None]:
        """Similarity to the whole response (n,), and to its sentences (sentences, n) where all texts are known."""
        sentences = sentences_of(response)
        places = [place for place, text in enumerate(texts) if text is not None]
        if self._similarities is None or not sentences or not places:
            return None, None
        cosines = self._similarities.between([response, *sentences], [text for text in texts if text is not None])
        semantic = np.zeros(len(texts))
        semantic[places] = cosines[0]
        return semantic, cosines[1:] if len(places) == len(texts) else None


def texts_in(chunks: ChunkStore, hashes: Sequence[ContentHash]) -> dict[ContentHash, str | None]:
    """Texts of contents by hash, as a generation holds them; None for those it does not."""
    texts: dict[ContentHash, str | None] = dict.fromkeys(hashes)
    rows = {row for each in texts if (row := chunks.row_of(each)) is not None}
    for content in chunks.contents(sorted(rows)):
        texts[content.content_hash] = content.text
    return texts
