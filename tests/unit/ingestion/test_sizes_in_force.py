"""ING-11: from beliefs to the sizes that a run cuts with."""

from __future__ import annotations

import pytest

from tests.support.sizing import a_code_document, chunks_of, outcomes
from weft.domain.chunks import MadeBy, Overflow, made_by, pairs_of
from weft.domain.documents import Domain
from weft.ingestion.sizing import PRIORS_ONLY, active_sizes, prior_sizes, snapshots
from weft.learning.evidence import Evidence
from weft.settings import load_settings

SETTINGS = load_settings(environment={})
CHUNKING, PRIORS = SETTINGS.chunking, SETTINGS.priors
READ = 10_000  # tokens: more than any size
BUNDLED = 254  # tokens that the bundled encoder reads of a chunk
SMALLER = outcomes(MadeBy(tokens=120, minimum=30, before=50), good=60)


def test_sizes_before_any_evidence_are_the_priors() -> None:
    """ING-11: defaults equal the priors, in whole tokens."""
    for domain, sizes in prior_sizes(CHUNKING, PRIORS, limit=READ).domains.items():
        stated = PRIORS.sizing.domains[domain]
        assert (sizes.max_tokens, sizes.target_tokens, sizes.min_tokens) == (stated.max, stated.target, stated.minimum)
        assert sizes.context_before == stated.before
        assert sizes.learned == PRIORS_ONLY


def test_trailing_context_follows_its_switch() -> None:
    """ING-11: the budget is believed in either way, and in force only where chunks may carry it."""
    on = CHUNKING.model_copy(update={"trailing_context": True})
    assert prior_sizes(CHUNKING, PRIORS, limit=READ).domains[Domain.GENERAL].context_after == 0
    assert prior_sizes(on, PRIORS, limit=READ).domains[Domain.GENERAL].context_after == 50


def test_useful_small_chunks_lower_the_target_and_the_snapshot_says_since_when() -> None:
    """ING-11: sizes in force name the learned version that put them there; unchanged ones keep the older name."""
    before = prior_sizes(CHUNKING, PRIORS, limit=READ)
    after = active_sizes(CHUNKING, PRIORS, SMALLER, limit=READ, learned="v000002", before=snapshots(before))
    assert after.domains[Domain.CODE].target_tokens < 170
    assert after.domains[Domain.CODE].learned == "v000002"
    again = active_sizes(CHUNKING, PRIORS, SMALLER, limit=READ, learned="v000003", before=snapshots(after))
    assert again.domains[Domain.CODE] == after.domains[Domain.CODE]


def test_one_outcome_does_not_move_a_size() -> None:
    """ING-11: sizes move in steps, so that a corpus is not cut anew over every click."""
    one = outcomes(MadeBy(tokens=200, minimum=30, before=40), good=1)
    assert active_sizes(CHUNKING, PRIORS, one, limit=READ) == prior_sizes(CHUNKING, PRIORS, limit=READ)


def test_no_feedback_moves_a_size_out_of_its_range() -> None:
    """ING-11, LRN-3: at most by the factor in the settings, and always consistent."""
    flood = outcomes(MadeBy(tokens=1, minimum=50, before=1, after=1), good=100_000)
    sizes = active_sizes(CHUNKING, PRIORS, flood, limit=READ).domains[Domain.CODE]
    assert sizes.target_tokens >= PRIORS.sizing.domains[Domain.CODE].target / CHUNKING.range * 0.9
    assert sizes.min_tokens <= sizes.target_tokens // 2
    assert sizes.overlap_tokens <= sizes.target_tokens // 2


@pytest.mark.parametrize("domain", list(Domain))
def test_use_moves_the_target_both_ways_within_what_the_bundled_encoder_reads(domain: Domain) -> None:
    """ING-11: long chunks that serve where short ones do not raise it, the opposite lowers it; the limit holds."""
    stated = prior_sizes(CHUNKING, PRIORS, limit=BUNDLED).domains[domain]
    assert stated.max_tokens == BUNDLED
    assert stated.target_tokens < BUNDLED

    def moved(good: int, bad: int) -> int:
        like, dislike = (MadeBy(tokens=tokens, target=stated.target_tokens) for tokens in (good, bad))
        evidence = outcomes(like, good=200, domain=domain) + outcomes(dislike, bad=200, domain=domain)
        return active_sizes(CHUNKING, PRIORS, evidence, limit=BUNDLED).domains[domain].target_tokens

    assert moved(60, 240) < stated.target_tokens < moved(240, 60) <= BUNDLED


def test_what_is_printed_is_what_cuts() -> None:
    """ING-11, OPS-3a: the snapshot names the sizes within the encoder's limit."""
    (general,) = (
        each for name, each in snapshots(prior_sizes(CHUNKING, PRIORS, limit=60)).items() if name == "general"
    )
    pairs = pairs_of(general)
    assert (pairs["max"], pairs["target"]) == ("60", "60")


def test_a_chunk_tells_what_made_it() -> None:
    """ING-11, LRN-9: its length, the minimum, the budget for the context it has, and the strategy that split it."""
    sizes = active_sizes(CHUNKING, PRIORS, Evidence(), limit=60).domains[Domain.CODE]
    chunks = chunks_of(a_code_document(), sizes)
    method = next(chunk for chunk in chunks if chunk.symbol == "Store.small")
    assert made_by(method) == MadeBy(tokens=method.tokens, target=60, minimum=30, before=30)
    head, part = [chunk for chunk in chunks if chunk.symbol == "large"][:2]
    assert made_by(head) == MadeBy(tokens=head.tokens, target=60, minimum=30, overflow=Overflow.RECURSIVE)
    assert made_by(part) == MadeBy(tokens=part.tokens, target=60, minimum=30, before=30, overflow=Overflow.RECURSIVE)
    assert int(pairs_of(part.sizing)["leading"]) <= 30


def test_a_record_says_nothing_about_learned_sizes() -> None:
    """ING-11: its author cut it, so that its outcomes are no evidence about how to cut."""
    document = a_code_document(record=True)
    (chunk,) = chunks_of(document, prior_sizes(CHUNKING, PRIORS, limit=READ).sizes_of(document))
    assert made_by(chunk) is None


@pytest.mark.parametrize("missing", ["code", "general"])
def test_every_domain_has_an_overlap(missing: str) -> None:
    """OPS-3."""
    stated = CHUNKING.model_dump()
    del stated["overlap_tokens"][Domain(missing)]
    with pytest.raises(ValueError, match=missing):
        type(CHUNKING).model_validate(stated)
