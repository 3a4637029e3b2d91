from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Q

from hub.accounts.models import Account
from hub.core import ids
from hub.core.lifecycle import Lifecycle

if TYPE_CHECKING:
    from datetime import datetime


class StoredObjectQuerySet(models.QuerySet["StoredObject"]):
    def held(self) -> "StoredObjectQuerySet":
        """What counts towards its owner's quota."""
        return self.exclude(state=StoredObject.State.RELEASED)

    def overdue(self, *, at: "datetime") -> "StoredObjectQuerySet":
        """Reservations whose upload never came."""
        return self.filter(state=StoredObject.State.RESERVED, reserved_until__lt=at)


class StoredObject(Lifecycle):
    """An object in the bucket, or room kept for one. Its bytes count from the reservation on."""

    class State(models.TextChoices):
        RESERVED = "reserved"
        STORED = "stored"
        RELEASED = "released"

    NEXT = {State.RESERVED: {State.STORED, State.RELEASED}, State.STORED: {State.RELEASED}}

    id = ids.id_field("obj")
    owner = models.ForeignKey(Account, models.PROTECT, related_name="stored_objects")
    key = models.CharField(max_length=500, unique=True)
    bytes = models.BigIntegerField()
    sha256 = models.CharField(max_length=64)
    state = models.CharField(max_length=8, choices=State, default=State.RESERVED)
    reserved_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    stored_at = models.DateTimeField(null=True)
    released_at = models.DateTimeField(null=True)

    objects = StoredObjectQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(name="stored_object_has_a_size", condition=Q(bytes__gte=0)),
            models.CheckConstraint(
                name="a_reservation_ends",
                condition=Q(state="reserved", reserved_until__isnull=False)
                | (~Q(state="reserved") & Q(reserved_until=None)),
            ),
            models.CheckConstraint(
                name="stored_objects_say_when",
                condition=~Q(state="stored") | Q(stored_at__isnull=False),
            ),
        ]
        indexes = [models.Index(fields=["state", "reserved_until"])]

    def __str__(self) -> str:
        return self.key


class StorageUsage(models.Model):
    """Bytes an account holds, reserved and stored: the one row on which reservations race."""

    account = models.OneToOneField(Account, models.CASCADE, primary_key=True, related_name="storage_usage")
    bytes = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.CheckConstraint(name="storage_usage_not_negative", condition=Q(bytes__gte=0)),
        ]

    def __str__(self) -> str:
        return f"{self.account_id}: {self.bytes}"
