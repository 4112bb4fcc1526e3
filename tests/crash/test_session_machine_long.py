"""LRN-14 to LRN-17, ARC-3: the machine of `tests/laws/test_session_machine.py`, for 500 histories of 50 steps."""

import pytest
from hypothesis import HealthCheck, settings

from tests.support.session_machine import SessionMachine

pytestmark = [pytest.mark.slow, pytest.mark.crash, pytest.mark.timeout(3_600)]


class TestSessionsAtLength(SessionMachine.TestCase):  # a class of its own: marks on that of the machine would be on all
    settings = settings(
        max_examples=500, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
    )
