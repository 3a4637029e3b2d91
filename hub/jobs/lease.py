import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import connection
from django.utils import timezone

from hub.jobs.models import Job


@contextmanager
def kept(job: Job) -> Iterator[None]:
    """Renew a job's lease from a thread for as long as its work lasts."""
    done = threading.Event()
    thread = threading.Thread(target=_renew, args=(job, done), name=f"lease of {job.pk}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _renew(job: Job, done: threading.Event) -> None:
    try:
        while not done.wait(settings.JOB_LEASE.total_seconds() / 3):
            Job.objects.filter(
                pk=job.pk, owner=job.owner, attempts=job.attempts, state=Job.State.RUNNING
            ).update(lease_until=timezone.now() + settings.JOB_LEASE)
    finally:
        connection.close()
