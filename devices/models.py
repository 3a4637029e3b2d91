from collections.abc import Collection
from datetime import datetime
from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q

from hub.accounts.actors import Actor
from hub.accounts.models import Account
from hub.campaigns.models import Checkpoint, Contract, Robot
from hub.core import ids
from hub.core.lifecycle import Lifecycle


class DeviceQuerySet(models.QuerySet["Device"]):
    def visible_to(self, by: Actor) -> Self:
        """What my accounts own; a device sees itself alone."""
        if by.device_id is not None:
            return self.filter(pk=by.device_id)
        return self.filter(owner__in=by.accounts())

    def active(self) -> Self:
        return self.filter(state=Device.State.ACTIVE)

    def with_keys(self) -> Self:
        """With what a page says of a device, in three queries however many there are."""
        return self.select_related("robot", "owner").prefetch_related("keys")


class Device(Lifecycle):
    """A robot box: one robot, one key, the contracts it is ready for."""

    class State(models.TextChoices):
        PENDING = "pending"
        ACTIVE = "active"
        REVOKED = "revoked"

    NEXT = {State.PENDING: {State.ACTIVE, State.REVOKED}, State.ACTIVE: {State.REVOKED}}

    id = ids.id_field("dev")
    owner = models.ForeignKey(Account, models.PROTECT, related_name="devices")
    robot = models.ForeignKey(Robot, models.PROTECT, related_name="devices")
    name = models.CharField(max_length=120)
    state = models.CharField(max_length=16, choices=State, default=State.PENDING)
    accepted_contracts = models.JSONField(default=list)
    enrol_handle = models.CharField(
        max_length=8,
        null=True,
        unique=True,
        help_text="by which a code finds its device; not the secret part",
    )
    enrol_code_sha256 = models.CharField(max_length=64, default="", blank=True)
    enrol_until = models.DateTimeField(null=True)
    enrol_wrong_tries = models.PositiveSmallIntegerField(default=0)
    last_seq = models.PositiveBigIntegerField(default=0)
    last_seen_at = models.DateTimeField(null=True)
    heartbeat = models.JSONField(null=True, help_text="the data of the last one")
    heartbeat_at = models.DateTimeField(null=True)
    heartbeat_sha256 = models.CharField(
        max_length=64, default="", blank=True, help_text="of its statement, so that a repeat is known"
    )
    revoked_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()

    objects = DeviceQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="a_revoked_device_has_its_moment",
                condition=Q(state="revoked", revoked_at__isnull=False)
                | ~Q(state="revoked") & Q(revoked_at=None),
            )
        ]

    def accepts(self, contract: Contract) -> bool:
        return self.accepted_as(contract) is not None

    def accepted_as(self, contract: Contract) -> str | None:
        """By its own name, or by robot and rate where the owner opted in to that."""
        if contract.robot_id != self.robot_id:
            return None
        return next(
            (name for name in (contract.name, contract.family) if name in self.accepted_contracts), None
        )

    def __str__(self) -> str:
        return self.name


class DeviceKey(models.Model):
    """A public key of a device and the time it was the one to verify with. History is kept."""

    id = ids.id_field("dky")
    device = models.ForeignKey(Device, models.PROTECT, related_name="keys")
    public_key = models.CharField(max_length=64, unique=True, help_text="base64url, 32 bytes")
    kid = models.CharField(max_length=16)
    active_from = models.DateTimeField()
    active_until = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="one_active_key_a_device", fields=["device"], condition=Q(active_until=None)
            )
        ]

    def __str__(self) -> str:
        return self.kid


class ApprovalQuerySet(models.QuerySet["Approval"]):
    def visible_to(self, by: Actor) -> Self:
        if by.device_id is not None:
            return self.filter(device=by.device_id)
        return self.filter(device__owner__in=by.accounts())

    def of(self, kind: str, subject_id: str) -> Self:
        return self.filter(subject_kind=kind, subject_id=subject_id)

    def for_reading(self) -> Self:
        """With what a page says of an approval, in one query."""
        return self.select_related(
            "device__owner", "checkpoint__run", "checkpoint__contract__robot", "issued_by"
        )

    def overdue(self, *, at: datetime) -> Self:
        """Whose time is up, whether or not the sweep has seen it."""
        return self.filter(state__in=Approval.EXPIRING, expires_at__lte=at)

    def standing(self, states: Collection[str], *, at: datetime) -> Self:
        """In one of these states now: an overdue one is expired, whatever its row still says."""
        is_overdue = Q(state__in=Approval.EXPIRING, expires_at__lte=at)
        found = Q(state__in=states) & ~is_overdue
        return self.filter(found | is_overdue if Approval.State.EXPIRED in states else found)


class Approval(Lifecycle):
    """A person's consent (M13) to one run of one checkpoint on one device."""

    class State(models.TextChoices):
        REQUESTED = "requested"
        ISSUED = "issued"
        RUNNING = "running"
        STOPPED = "stopped"
        DECLINED = "declined"
        WITHDRAWN = "withdrawn"
        EXPIRED = "expired"
        REVOKED = "revoked"

    NEXT = {
        State.REQUESTED: {State.ISSUED, State.DECLINED, State.WITHDRAWN, State.EXPIRED},
        State.ISSUED: {State.RUNNING, State.REVOKED, State.EXPIRED},
        State.RUNNING: {State.STOPPED},
    }
    OPEN = frozenset({State.REQUESTED, State.ISSUED, State.RUNNING})
    EXPIRING = frozenset({State.REQUESTED, State.ISSUED})
    STARTABLE = frozenset({State.ISSUED, State.RUNNING})
    ENDED_WITHOUT_START = frozenset({State.DECLINED, State.WITHDRAWN, State.EXPIRED, State.REVOKED})

    id = ids.id_field("apr")
    device = models.ForeignKey(Device, models.PROTECT, related_name="approvals")
    subject_kind = models.CharField(max_length=16)
    subject_id = models.CharField(max_length=32)
    checkpoint = models.ForeignKey(Checkpoint, models.PROTECT, related_name="approvals")
    onnx_sha256 = models.CharField(max_length=64)
    about = models.TextField(help_text="what is asked for, in the words of its subject when it was asked")
    reason = models.TextField()
    state = models.CharField(max_length=16, choices=State, default=State.REQUESTED)
    requested_at = models.DateTimeField()
    requested_by = models.CharField(max_length=254)
    requested_by_user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.PROTECT,
        null=True,
        related_name="+",
        help_text="the person who asked, or who made the key that asked",
    )
    expires_at = models.DateTimeField(help_text="of the request; once issued, the latest start")
    issued_at = models.DateTimeField(null=True)
    issued_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+")
    is_self_approved = models.BooleanField(default=False)
    token = models.TextField(default="", blank=True, help_text="the signed envelope, exactly as made")
    document = models.BinaryField(default=b"", help_text="the frozen run sheet: the bytes under the digest")
    document_sha256 = models.CharField(max_length=64, default="", blank=True)
    ended_at = models.DateTimeField(null=True, help_text="declined, withdrawn, expired or revoked")
    ended_by = models.CharField(max_length=254, default="", blank=True)
    ended_reason = models.TextField(default="", blank=True)
    started_at = models.DateTimeField(null=True)
    started_with = models.ForeignKey(DeviceKey, models.PROTECT, null=True, related_name="+")
    stop_requested_at = models.DateTimeField(null=True)
    stop_requested_by = models.CharField(max_length=254, default="", blank=True)
    stopped_at = models.DateTimeField(null=True)
    stopped_by = models.CharField(
        max_length=32,
        default="",
        blank=True,
        help_text="revoked, where a stop was asked for; the log says the rest",
    )
    stopped_reason = models.TextField(
        default="", blank=True, help_text="what the robot said of its last stage"
    )

    objects = ApprovalQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["subject_kind", "subject_id"])]
        constraints = [
            models.CheckConstraint(
                name="issued_at_by_and_token_together",
                condition=Q(issued_at=None, issued_by=None, token="")
                | Q(issued_at__isnull=False, issued_by__isnull=False) & ~Q(token=""),
            ),
            models.CheckConstraint(
                name="started_at_and_with_together",
                condition=Q(started_at=None, started_with=None)
                | Q(started_at__isnull=False, started_with__isnull=False),
            ),
            models.UniqueConstraint(
                name="one_running_approval_a_device", fields=["device"], condition=Q(state="running")
            ),
            models.UniqueConstraint(
                name="one_open_approval_a_subject",
                fields=["subject_kind", "subject_id"],
                condition=Q(state__in=["requested", "issued", "running"]),
            ),
        ]

    def state_at(self, at: datetime) -> "Approval.State":
        """The state that counts: one whose time is up is expired, also before the sweep has seen it."""
        if self.state in self.EXPIRING and self.expires_at <= at:
            return self.State.EXPIRED
        return self.State(self.state)

    def __str__(self) -> str:
        return self.id


class DeviceEvent(models.Model):
    """A signed statement of a device and the answer it got, both as bytes: a repeat gets the same answer."""

    id = ids.id_field("evn")
    device = models.ForeignKey(Device, models.PROTECT, related_name="events")
    approval = models.ForeignKey(Approval, models.PROTECT, null=True, related_name="events")
    seq = models.PositiveBigIntegerField()
    after_seq = models.PositiveBigIntegerField(help_text="the number before it; what lies between never came")
    kind = models.CharField(max_length=32)
    statement = models.BinaryField(help_text="the canonical payload that was signed")
    signature = models.CharField(max_length=128)
    kid = models.CharField(max_length=16)
    data = models.JSONField(help_text="for reading; the statement is the record")
    answer = models.TextField()
    received_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(name="one_event_a_seq", fields=["device", "seq"])]


class Nonce(models.Model):
    """A signed request counts once."""

    device = models.ForeignKey(Device, models.CASCADE, related_name="+")
    nonce = models.CharField(max_length=64)
    seen_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(name="one_use_a_nonce", fields=["device", "nonce"])]
