"""OPS-5, OPS-11: tokens, their scopes, and how often their holders may ask."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.domain.errors import ConfigurationError
from weft.service.gate import Buckets, scope_needed
from weft.service.tokens import TokenScope, TokenSet

ONE, OTHER = "a" * 24, "b" * 24
SCOPES = st.frozensets(st.sampled_from(list(TokenScope)), min_size=1)
TOKENS = st.text("abcXYZ019._~+/=-", min_size=16, max_size=40)


@given(st.dictionaries(TOKENS, SCOPES, max_size=5), TOKENS)
def test_tokens_are_read_as_they_are_written(written: dict[str, frozenset[TokenScope]], stranger: str) -> None:
    """Each has its scopes, and nobody else has any."""
    entries = [f"{token}:{'+'.join(sorted(scopes))}" for token, scopes in written.items()]
    for text in (",".join(entries), "\n".join(["# who may ask", *entries])):
        tokens = TokenSet.read(text, where="here")
        assert len(tokens) == len(written)
        for token, scopes in written.items():
            caller = tokens.bearer(f"Bearer {token}")
            assert caller is not None
            assert caller.scopes == scopes
        assert (tokens.of(stranger) is not None) == (stranger in written)


@pytest.mark.parametrize(
    "entry", ["short:search", f"{ONE}:", ONE, f"{ONE}:root", f"{ONE}:search+root", f"{'ä' * 20}:search", ":search"]
)
def test_what_is_no_token_is_refused_and_not_shown(entry: str) -> None:
    """The message names the place, and nothing of a secret."""
    with pytest.raises(ConfigurationError, match="here, entry 2: expected TOKEN:search") as refused:
        TokenSet.read(f"{OTHER}:search,{entry}", where="here")
    assert ONE not in str(refused.value)
    assert OTHER not in str(refused.value)


def test_a_file_and_the_environment_add_up(tmp_path: Path) -> None:
    """Both are known; an empty file is a mistake."""
    file = tmp_path / "tokens"
    file.write_text(f"# the console\n{ONE}:admin\n")
    tokens = TokenSet.configured(file, f"{OTHER}:search")
    assert [tokens.of(each) is not None for each in (ONE, OTHER, "c" * 24)] == [True, True, False]
    file.write_text("# nobody\n")
    with pytest.raises(ConfigurationError, match="found none"):
        TokenSet.configured(file, "")
    with pytest.raises(ConfigurationError, match="expected tokens in"):
        TokenSet.configured(tmp_path / "missing", "")


def test_secrets_are_in_no_representation() -> None:
    """What is logged or shown of tokens says how many there are."""
    tokens = TokenSet.read(f"{ONE}:search", where="here")
    assert ONE not in repr(tokens)
    assert ONE not in repr(tokens.of(ONE))


@pytest.mark.parametrize(
    ("method", "path", "needed"),
    [
        ("GET", "/", None),
        ("GET", "/healthz", None),
        ("GET", "/readyz", None),
        ("GET", "/v1/search", TokenScope.SEARCH),
        ("GET", "/anything", TokenScope.SEARCH),
        ("POST", "/v1/feedback", TokenScope.FEEDBACK),
        ("POST", "/v1/lessons", TokenScope.FEEDBACK),
        ("POST", "/v1/lessons/prompt", TokenScope.SEARCH),
        ("POST", "/v1/generations/g/rollback", TokenScope.ADMIN),
        ("POST", "/v1/learned/v/promote", TokenScope.ADMIN),
        ("GET", "/v1/principals", TokenScope.ADMIN),
        ("DELETE", "/v1/principals/ada", TokenScope.ADMIN),
        ("DELETE", "/anything", TokenScope.ADMIN),
    ],
)
def test_every_path_needs_a_scope(method: str, path: str, needed: TokenScope | None) -> None:
    """What is not named needs a token all the same."""
    assert scope_needed(method, path) is needed


@given(st.floats(0.5, 50.0), st.lists(st.floats(0.0, 3.0), min_size=1, max_size=200))
def test_nobody_asks_oftener_than_a_bucket_holds(per_s: float, pauses: list[float]) -> None:
    """Over any time, at most rate · time + one bucket; whoever keeps to the rate is never refused."""
    now = 0.0
    buckets = Buckets(per_s, lambda: now)
    let_in = 0
    for pause in pauses:
        now += pause
        let_in += buckets.take("ada")
        assert let_in <= per_s * now + max(per_s, 1.0) + 1e-6
    now += 10.0
    for _ in range(20):
        now += 1.001 / per_s  # a hair more than its share of the time, whatever is rounded
        assert buckets.take("ada")
        assert buckets.take("bob")
