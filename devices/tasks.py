from datetime import datetime, timedelta

from devices import signatures
from devices.services import approvals
from hub.jobs.registry import job


@job("approvals.expire", every=timedelta(minutes=1))
def expire_approvals(*, at: datetime) -> None:
    approvals.expire_due(at=at)


@job("nonces.sweep", every=timedelta(minutes=5))
def sweep_nonces(*, at: datetime) -> None:
    signatures.sweep_nonces(at=at)
