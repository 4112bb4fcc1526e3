"""Models behind OpenAI-compatible endpoints: one question, one answer."""

from __future__ import annotations

import http.client
import json
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import SecretStr

_ANSWER_BYTES = 1 << 20


class EndpointError(OSError):
    """The endpoint does not answer, or not with a text."""


@dataclass(frozen=True, slots=True)
class ChatEndpoint:
    """A model that answers chat completions."""

    url: str  # of the completions, http or https
    model: str
    api_key: SecretStr  # empty where none is asked for
    timeout_s: float  # for one answer

    def complete(self, instruction: str, text: str, *, max_tokens: int | None = None) -> str:
        """What the model answers, the same again as far as it can: its temperature is 0."""
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "system", "content": instruction}, {"role": "user", "content": text}],
            "temperature": 0,
        }
        if max_tokens is not None:
            body["max_tokens"] = max_tokens
        headers = {"Content-Type": "application/json"}
        if key := self.api_key.get_secret_value():
            headers["Authorization"] = f"Bearer {key}"
        try:
            request = urllib.request.Request(self.url, json.dumps(body).encode(), headers)  # noqa: S310  http(s) alone
            with urllib.request.urlopen(request, timeout=self.timeout_s) as answer:  # noqa: S310  as above
                return _content(json.loads(answer.read(_ANSWER_BYTES)))
        except (OSError, ValueError, RecursionError, http.client.HTTPException) as error:
            raise EndpointError(f"{self.url}: expected a chat completion, found: {error}") from error


def _content(answer: Any) -> str:
    try:
        content = answer["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError(f"no content, but {_shape(answer)}") from error
    if not isinstance(content, str) or not content.strip():
        raise ValueError("no text")
    return content.encode("utf-8", "replace").decode()


def _shape(answer: Any) -> str:
    return f"the keys {sorted(answer)[:5]}" if isinstance(answer, Mapping) else type(answer).__name__
