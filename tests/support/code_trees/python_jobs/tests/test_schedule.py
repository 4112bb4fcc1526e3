from jobs.queue import MemoryQueue
from jobs.schedule import Every, enqueue_due, parse_interval


def test_missed_intervals_count_once():
    queue = MemoryQueue()
    assert enqueue_due([Every("report", 60.0)], queue, 600.0) == 1


def test_an_interval_has_a_unit():
    assert parse_interval("5m") == 300.0
