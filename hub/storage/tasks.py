from datetime import datetime, timedelta

from hub.jobs.registry import job
from hub.storage import s3, services


@job("storage.delete")
def delete(*, key: str, at: datetime) -> None:
    s3.delete(key)


@job("storage.sweep", every=timedelta(minutes=1))
def sweep(*, at: datetime) -> None:
    services.sweep_expired(at=at)
