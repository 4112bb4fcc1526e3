"""What about chunk sizes is not learned; their priors are in `conf/priors.yaml` (ING-11)."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from weft.domain.documents import Domain
from weft.domain.sections import Section


class ProseSettings(Section):
    """What stays together in documents with headings (ING-6), in the encoder's tokens; see `ChunkSizes`."""

    list_tokens: int
    paragraph_tokens: int


class ConversationSettings(Section):
    """What ends a topic of a conversation (ING-8); see `TopicRules`."""

    topic_distance: Annotated[float, Field(ge=0.0, le=2.0)]
    topic_phrases: tuple[str, ...]


class ConfigurationSettings(Section):
    """What stays together in configuration files (ING-9), in the encoder's tokens; see `ChunkSizes`."""

    whole_tokens: Annotated[int, Field(gt=0)]
    nested_tokens: Annotated[int, Field(gt=0)]


class ChunkingSettings(Section):
    """How documents are cut, besides the sizes that are learned."""

    record_max_tokens: Annotated[int, Field(gt=0)]  # A record stays whole up to this
    # what neighbouring windows of running text share, by domain
    overlap_tokens: dict[Domain, Annotated[int, Field(ge=0)]]
    step: Annotated[float, Field(gt=0.0)]  # Sizes move from their priors by such steps, and at most by this factor
    range: Annotated[float, Field(ge=1.0)]
    trailing_context: bool  # whether the beginning of the next sibling follows a chunk's text, within its budget
    prose: ProseSettings  # what stays together in documents with headings
    conversation: ConversationSettings  # what ends a topic of a conversation
    configuration: ConfigurationSettings  # what stays together in configuration files

    @model_validator(mode="after")
    def _covers_everything(self) -> Self:
        if missing := sorted(set(Domain) - set(self.overlap_tokens)):
            raise ValueError(f"chunking.overlap_tokens: expected every domain, missing {missing}")
        return self
