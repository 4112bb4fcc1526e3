from jobs.base import Job
from jobs.queue import MemoryQueue
from jobs.retry import Backoff
from jobs.worker import Worker


def test_a_job_that_fails_is_tried_again():
    queue, times = MemoryQueue(), [0.0]
    worker = Worker(queue, backoff=Backoff(attempts=2), clock=lambda: times[0])
    calls = []

    @worker.handles("mail")
    def mail(payload):
        calls.append(payload)
        raise RuntimeError("no network")

    queue.push(Job("mail"))
    worker.run_once()
    times[0] = 1000.0
    worker.run_once()
    assert len(calls) == 2
    assert [job.name for job in worker.dead] == ["mail"]


def test_higher_priority_comes_first():
    queue = MemoryQueue()
    queue.push(Job("low"))
    queue.push(Job("high", priority=5))
    assert queue.take(0.0).name == "high"
