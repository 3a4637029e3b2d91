from datetime import datetime
from typing import Protocol

from django.db import models, transaction

from hub.audit import actions
from hub.audit.models import Event


class Says(Protocol):
    """Whoever acts, as far as the record wants to know."""

    @property
    def kind(self) -> str: ...
    @property
    def label(self) -> str: ...


def record(
    action: str,
    *,
    by: Says | str,
    account_id: str,
    target: models.Model | str,
    at: datetime,
    sentence: str,
    **data: object,
) -> Event:
    """Write one audit event inside the caller's transaction, so that both land or neither does."""
    if not transaction.get_connection().in_atomic_block:
        raise RuntimeError(f"{action} was audited outside a transaction")
    if action not in actions.known():
        raise RuntimeError(f"{action} is in no app's list of audited actions")
    return Event.objects.create(
        action=action,
        actor_kind="system" if isinstance(by, str) else str(by.kind),
        actor=by if isinstance(by, str) else by.label,
        account_id=account_id,
        target=target if isinstance(target, str) else str(target.pk),
        sentence=sentence,
        data=data,
        at=at,
    )
