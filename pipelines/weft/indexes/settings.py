"""How generations are indexed."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from weft.domain.sections import Section


class IsolationSettings(Section):
    """How much alone each content stands: by how many nearest others, among how many (RET-13)."""

    neighbours: int = Field(ge=0)
    among: int = Field(ge=2)


class VectorSettings(Section):
    """Dense search: exact for small corpora, else IVF-PQ with a refine stage tuned to a target recall (ING-22)."""

    exact_below: int = Field(ge=0)
    target_recall: float = Field(gt=0.0, le=1.0)
    bytes_per_vector: float = Field(gt=0.0)
    isolation: IsolationSettings


class FieldWeights(Section):
    """Weight of each field's BM25 score; fields of weight 0 are not searched."""

    contents: float = Field(ge=0.0)
    title: float = Field(ge=0.0)
    symbols: float = Field(ge=0.0)


class WordSettings(Section):
    """Weights of what a query finds by its words as they are typed, beside the BM25 score of `contents` (RET-22)."""

    exact: float = Field(ge=0.0)  # of words in the form that they are typed in
    # of names in another spelling, names with digits, flags, operators, of terms of scripts without blanks, and
    # of the only word of a query
    names: float = Field(ge=0.0)
    # of words without their accents, plurals that the stemmer does not know, and Arabic and Hindi stems
    weak: float = Field(ge=0.0)
    phrases: float = Field(ge=0.0)  # of the words of a name, or of the whole query, side by side
    phrase_words: int = Field(ge=0)  # up to so many words a whole query is looked for as it stands


class LexicalSettings(Section):
    """Lexical search: BM25 over Lucene fields (ING-23)."""

    k1: float = Field(ge=0.0)
    b: float = Field(ge=0.0, le=1.0)
    analysis: Literal["words-1", "english"]
    weights: FieldWeights
    words: WordSettings


class AliasSettings(Section):
    """When two names of one label are taken for one entity (ING-17)."""

    similarity: float = Field(ge=-1.0, le=1.0)


class GraphIndexSettings(Section):
    """Entities, mentions and cross-references (ING-14, ING-17)."""

    enabled: bool
    scopes: dict[str, float]
    member_scopes: dict[str, float]
    least_confidence: float = Field(gt=0.0, le=1.0)
    least_mention_confidence: float = Field(ge=0.0, le=1.0)
    found_strength: float = Field(ge=0.0, le=1.0)
    similar_from: float = Field(ge=-1.0, le=1.0)
    aliases: AliasSettings


class MergeSettings(Section):
    """What the joins of a generation's tables and of its graph may use."""

    memory_mb: int = Field(ge=64)
    threads: int = Field(ge=1)


class RevisionSettings(Section):
    """When a text counts as what another one became (ARC-4)."""

    least_overlap: float = Field(gt=0.0, le=1.0)  # of the shorter one's runs of three words, in the other one
    days: int = Field(ge=0)  # for how long it is remembered what became of a text


class IndexSettings(Section):
    """Everything the indexes of a generation are built with."""

    shard_contents: int = Field(ge=1)
    shards: int = Field(ge=1)
    rows_per_shard: int = Field(ge=1)
    merge: MergeSettings
    vectors: VectorSettings
    lexical: LexicalSettings
    graph: GraphIndexSettings
    revisions: RevisionSettings
