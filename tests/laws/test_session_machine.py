"""LRN-14 to LRN-17, ARC-3: any history of sessions, commits and crashes comes to what a model of plain dicts says.

Feedback, queries, commits, crashes and recoveries, merges, retries, abandoned, expired and unlearned sessions, and
others beside them; read whole once more at the end. The long run of the same machine is in `tests/crash`.
"""

from hypothesis import HealthCheck, settings

from tests.support.examples import examples
from tests.support.session_machine import SessionMachine


class TestSessions(SessionMachine.TestCase):
    settings = settings(
        max_examples=examples(25), stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
    )
