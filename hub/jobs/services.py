"""
Background work. A Job row, written with the change that wants it, is the truth; whoever claims it runs it.

With Redis, Celery is told of a row when its transaction has committed, and a sweeper tells it again. On one
machine a loop claims the same rows. Neither is trusted with more than a hint.
"""

import logging
import os
import secrets
import socket
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, Max
from django.utils import timezone

from hub.jobs import registry
from hub.jobs.lease import kept
from hub.jobs.models import Job

log = logging.getLogger(__name__)

State = Job.State
BACKOFF, LONGEST_BACKOFF = timedelta(seconds=5), timedelta(hours=1)


def enqueue(
    kind: str,
    *,
    at: datetime,
    args: Mapping[str, Any] | None = None,
    unique_key: str | None = None,
    run_after: datetime | None = None,
) -> Job:
    """
    Write a job inside the caller's transaction, so that the work is wanted exactly when the change is made.

    An open job of the same unique key stands for this one too.
    """
    if not transaction.get_connection().in_atomic_block:
        raise RuntimeError(f"{kind} was enqueued outside a transaction")
    if not registry.is_known(kind):
        raise LookupError(f"{kind} is no registered kind of job")
    if unique_key and (open_job := Job.objects.open().filter(unique_key=unique_key).first()):
        return open_job
    wanted = Job(
        kind=kind, args=dict(args or {}), unique_key=unique_key, run_after=run_after or at, created_at=at
    )
    job = _insert(wanted)
    if job.run_after <= at:
        publish(job.pk)
    return job


def publish(pk: str) -> None:
    """Tell Celery of a job when the transaction has committed. That it cannot be told is no failure."""
    if not settings.REDIS_URL:
        return

    def tell() -> None:
        from hub.celery import tell_worker  # costs its import only where there is a broker

        tell_worker(pk)

    transaction.on_commit(tell, robust=True)


def run_due(*, at: datetime, most: int = 100) -> int:
    """Claim and run what is due, oldest first. Returns how many jobs ran."""
    owner = _me()
    due = list(Job.objects.due(at=at).order_by("run_after", "pk").values_list("pk", flat=True)[:most])
    return sum(run(pk, owner=owner) for pk in due)


def run(pk: str, *, owner: str = "") -> bool:
    """Claim one job and run it; False when somebody else has it, or when it is over."""
    at = timezone.now()
    job = claim(pk, owner=owner or _me(), at=at)
    if job is None:
        return False
    if job.attempts > settings.JOB_ATTEMPTS:  # each worker that took it died over it
        _end(job, state=State.FAILED, error=job.last_error or "Its workers died.", at=at)
        return False
    try:
        with kept(job):
            registry.kind(job.kind).work(**job.args, at=at)
    except Exception as error:
        log.exception("job %s (%s) failed, attempt %s", job.pk, job.kind, job.attempts)
        _fail(job, error=f"{type(error).__name__}: {error}", at=timezone.now())
    else:
        _end(job, state=State.DONE, error="", at=timezone.now())
    return True


def claim(pk: str, *, owner: str, at: datetime) -> Job | None:
    """Take a job that is due. One conditional UPDATE decides among all who try."""
    taken = (
        Job.objects.due(at=at)
        .filter(pk=pk)
        .update(
            state=State.RUNNING,
            owner=owner,
            lease_until=at + settings.JOB_LEASE,
            attempts=F("attempts") + 1,
        )
    )
    return Job.objects.get(pk=pk) if taken else None


def enqueue_periodic(*, at: datetime) -> None:
    """Write the jobs that come by themselves and are due again."""
    last = dict(
        Job.objects.filter(kind__in=[name for name, _ in registry.periodic()])
        .values_list("kind")
        .annotate(Max("created_at"))
    )
    for name, every in registry.periodic():
        if name not in last or last[name] <= at - every:
            with transaction.atomic():
                enqueue(name, at=at, unique_key=f"every:{name}")


def republish_due(*, at: datetime, most: int = 500) -> int:
    """Tell Celery again of what is due: it may never have heard, or have lost it."""
    due = list(Job.objects.due(at=at).order_by("run_after", "pk").values_list("pk", flat=True)[:most])
    for pk in due:
        publish(pk)
    return len(due)


def purge(*, at: datetime) -> int:
    """Forget jobs that were done long ago. Failed ones stay for a person to look at."""
    old = Job.objects.filter(state=State.DONE, finished_at__lt=at - settings.JOBS_KEPT_FOR)
    return old.delete()[0]


def _insert(job: Job) -> Job:
    try:
        with transaction.atomic():
            job.save(force_insert=True)
    except IntegrityError:  # the same key, from another transaction, a moment ago
        if (open_job := Job.objects.open().filter(unique_key=job.unique_key).first()) is None:
            raise
        return open_job
    return job


def _fail(job: Job, *, error: str, at: datetime) -> None:
    if job.attempts >= settings.JOB_ATTEMPTS:
        _end(job, state=State.FAILED, error=error, at=at)
        return
    wait = min(BACKOFF * 2 ** (job.attempts - 1), LONGEST_BACKOFF)
    _mine(job).update(state=State.QUEUED, lease_until=None, run_after=at + wait, last_error=error[:2000])


def _end(job: Job, *, state: str, error: str, at: datetime) -> None:
    _mine(job).update(state=state, lease_until=None, finished_at=at, last_error=error[:2000])


def _mine(job: Job) -> Any:
    """The row, as long as nobody took it over after a lease that ran out."""
    return Job.objects.filter(pk=job.pk, state=State.RUNNING, owner=job.owner, attempts=job.attempts)


def _me() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
