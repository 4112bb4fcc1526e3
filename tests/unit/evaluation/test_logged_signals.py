"""CON-8: what weights are fitted to, as the query log tells it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.support.logged_queries import a_logged, a_result, an_outcome
from weft.domain.ranking import Signal
from weft.evaluation.log.questions import logged_signals
from weft.learning.pooling.gathering import SIGNALS
from weft.settings import load_settings

RULES = load_settings(environment={}).feedback.credit


def shown(content: str, rank: int, propensity: float = 1.0) -> object:
    return replace(a_result(content, rank=rank, propensity=propensity), signals={"lexical": rank / 10.0})


def test_words_about_results_become_rows_with_their_signals() -> None:
    """CON-8: verdicts, a selection and whom it passed over; the whole answer's outcomes say nothing of one result."""
    results = [shown("a", 1), shown("b", 2, propensity=0.5), shown("c", 3)]
    outcomes = [
        an_outcome("c", "selection", principal="bob"),
        an_outcome("b", "explicit", -0.5, principal="ada"),
        an_outcome(None, "explicit", 1.0),
        an_outcome("elsewhere", "explicit", 1.0),
    ]
    logged = logged_signals([a_logged(1, results, outcomes=outcomes), a_logged(2, results)], RULES)
    rows = list(zip(logged.good.tolist(), logged.weight.tolist(), logged.propensity.tolist(), strict=True))
    assert rows == [
        (True, RULES.selected, 1.0),
        (False, RULES.skipped, 1.0),
        (False, RULES.skipped, 0.5),
        (False, 0.5 * RULES.explicit, 0.5),
    ]
    assert logged.values[:, SIGNALS.index(Signal.LEXICAL)].tolist() == [0.3, 0.1, 0.2, 0.2]
    assert np.isnan(logged.values[:, SIGNALS.index(Signal.VECTOR)]).all()
    assert logged.present() == (Signal.LEXICAL,)
    assert logged.principal.tolist() == [0, 0, 0, 1]
    assert len({*logged.question.tolist()}) == 1


def test_a_log_without_outcomes_is_nothing() -> None:
    """CON-8: and no error."""
    assert len(logged_signals([a_logged(1, [shown("a", 1)])], RULES)) == 0
