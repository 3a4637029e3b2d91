"""Room in the bucket: reserved, filled, given back. The quota is one conditional UPDATE: it cannot race."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, Sum
from django.db.models.functions import Coalesce

from hub.accounts.actors import Actor
from hub.accounts.models import Account
from hub.core.problems import Conflict, TooLarge
from hub.jobs import services as jobs
from hub.storage.models import StorageUsage, StoredObject

State = StoredObject.State


class OverQuota(TooLarge):
    slug = "over-quota"
    title = "The account's storage is full."


class NotReserved(Conflict):
    slug = "not-reserved"
    title = "This upload's time is over; ask for a new one."


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Room that somebody asks for: where, how much, and which bytes."""

    key: str
    bytes: int
    sha256: str


@transaction.atomic
def reserve(
    *, owner: Account, wanted: Sequence[Wanted], at: datetime, lasts: timedelta | None = None
) -> list[StoredObject]:
    """
    Keep room for all of these objects, or for none.

    :raises OverQuota: when they do not fit beside what the owner holds
    """
    total = sum(one.bytes for one in wanted)
    StorageUsage.objects.get_or_create(account=owner)
    _take(owner, total)
    until = at + (lasts or settings.PRESIGN_FOR) + settings.RESERVATION_SLACK
    return StoredObject.objects.bulk_create(
        StoredObject(
            owner=owner,
            key=one.key,
            bytes=one.bytes,
            sha256=one.sha256,
            reserved_until=until,
            created_at=at,
        )
        for one in wanted
    )


@transaction.atomic
def complete(*, obj: StoredObject, at: datetime, key: str | None = None) -> StoredObject:
    """
    Count an object as stored, under the key of the hub's own copy if there is one.

    The key that was written to from outside is deleted when the last URL for it has ended.

    :raises NotReserved: when the reservation has ended meanwhile
    """
    obj = StoredObject.objects.select_for_update().get(pk=obj.pk)
    if obj.state != State.RESERVED:
        raise NotReserved(f"The object is {obj.state}.", state=str(obj.state))
    if key is not None and key != obj.key:
        forget(obj.key, at=at, again=obj.reserved_until)
        obj.key = key
    obj.move_to(State.STORED)
    obj.stored_at, obj.reserved_until = at, None
    obj.save(update_fields=["key", "state", "stored_at", "reserved_until"])
    return obj


@transaction.atomic
def release(*, obj: StoredObject, at: datetime) -> None:
    """Give an object's room back and have its bytes deleted. A second time changes nothing."""
    obj = StoredObject.objects.select_for_update().get(pk=obj.pk)
    if obj.state != State.RELEASED:
        _release(obj, at=at)


def release_under(*, prefix: str, at: datetime) -> None:
    """Give back the open reservations under a prefix, when another attempt takes their place."""
    for obj in StoredObject.objects.filter(key__startswith=prefix, state=State.RESERVED).order_by("pk"):
        release(obj=obj, at=at)


def sweep_expired(*, at: datetime, most: int = 500) -> int:
    """Give back the room of uploads that never came. Returns how many there were."""
    overdue = StoredObject.objects.overdue(at=at).order_by("pk").values_list("pk", flat=True)
    return sum(_release_overdue(pk, at=at) for pk in list(overdue[:most]))


def forget(key: str, *, at: datetime, again: datetime | None = None) -> None:
    """Have a key deleted by a job: now, and once more when nobody can be writing it any longer."""
    for moment in {at, max(at, again or at)}:
        jobs.enqueue(
            "storage.delete",
            args={"key": key},
            unique_key=f"{key}@{moment:%Y-%m-%dT%H:%M:%S}"[-200:],
            run_after=moment,
            at=at,
        )


def usage(by: Actor) -> dict[str, Any]:
    """What each account that the actor speaks for holds."""
    reserved = Sum("stored_objects__bytes", filter=Q(stored_objects__state=State.RESERVED), default=0)
    accounts = by.accounts().annotate(held=Coalesce(F("storage_usage__bytes"), 0), reserved=reserved)
    return {
        "items": [
            {
                "account": account.pk,
                "name": account.name,
                "bytes": account.held,
                "reserved_bytes": account.reserved,
                "quota_bytes": settings.STORAGE_QUOTA_BYTES,
            }
            for account in accounts.order_by("pk")
        ]
    }


def _take(owner: Account, total: int) -> None:
    fits = StorageUsage.objects.filter(account=owner, bytes__lte=settings.STORAGE_QUOTA_BYTES - total)
    if not fits.update(bytes=F("bytes") + total):
        held = StorageUsage.objects.get(account=owner).bytes
        raise OverQuota(
            f"{total} bytes do not fit: {held} of {settings.STORAGE_QUOTA_BYTES} are held.",
            bytes=total,
            held_bytes=held,
            quota_bytes=settings.STORAGE_QUOTA_BYTES,
        )


@transaction.atomic
def _release_overdue(pk: str, *, at: datetime) -> bool:
    obj = StoredObject.objects.select_for_update().get(pk=pk)
    is_overdue = obj.reserved_until is not None and obj.reserved_until < at
    if is_overdue:  # it may have been completed since it was listed
        _release(obj, at=at)
    return is_overdue


def _release(obj: StoredObject, *, at: datetime) -> None:
    """The caller holds the row's lock. A slow PUT may still be under way, so the key is deleted twice."""
    forget(obj.key, at=at, again=max(at, obj.reserved_until or at) + settings.ORPHAN_AFTER)
    obj.move_to(State.RELEASED)
    obj.released_at, obj.reserved_until = at, None
    obj.save(update_fields=["state", "released_at", "reserved_until"])
    StorageUsage.objects.filter(account=obj.owner_id).update(bytes=F("bytes") - obj.bytes)
