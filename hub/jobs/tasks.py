"""The hub's own periodic work on jobs."""

from datetime import datetime, timedelta

from hub.jobs import services
from hub.jobs.registry import job


@job("jobs.purge", every=timedelta(hours=1))
def purge(*, at: datetime) -> None:
    services.purge(at=at)
