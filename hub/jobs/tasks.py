"""The hub's own housekeeping."""

from datetime import datetime, timedelta

from django.core.management import call_command

from hub.jobs import services
from hub.jobs.registry import job


@job("jobs.purge", every=timedelta(hours=1))
def purge(*, at: datetime) -> None:
    services.purge(at=at)


@job("sessions.clear", every=timedelta(days=1))
def clear_sessions(*, at: datetime) -> None:
    call_command("clearsessions")
