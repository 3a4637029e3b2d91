from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import Case, Q, Value, When

from devices.models import Approval
from hub.accounts.actors import Actor
from hub.campaigns.models import Checkpoint
from hub.core import ids
from trials.models.session import TrialSession

SUBJECT_KIND = "trial"  # what an approval calls a trial that it is about


class TrialQuerySet(models.QuerySet["Trial"]):
    def visible_to(self, by: Actor) -> Self:
        """Whoever sees the session; a device, the trials whose approval is its own."""
        if by.device_id is not None:
            return self.filter(approval__device=by.device_id)
        return self.filter(session__owner__in=by.accounts())

    def about(self, approval_id: str) -> Self:
        """The trial that an approval is about, also one that another has taken the place of."""
        approvals = Approval.objects.filter(pk=approval_id, subject_kind=SUBJECT_KIND)
        return self.filter(pk__in=approvals.values("subject_id"))

    def with_status(self, *, at: datetime) -> Self:
        """
        Note on each the status that `trials.rules.status` gives it; a test holds the two together.

        A trial without an approval is never overtaken, for it keeps all later ones from starting.
        """
        return self.annotate(status=_status(at))


class Trial(models.Model):
    """One checkpoint's place in a session, and everything that came of it."""

    class Role(models.TextChoices):
        CONTROL = "control"
        CANDIDATE = "candidate"

    id = ids.id_field("trl")
    session = models.ForeignKey(TrialSession, models.PROTECT, related_name="trials")
    position = models.PositiveSmallIntegerField()
    role = models.CharField(max_length=16, choices=Role)
    checkpoint = models.ForeignKey(Checkpoint, models.PROTECT, related_name="trials")
    # As the round that measured the checkpoint had them locked; without one there is nothing to say.
    gates = models.JSONField(default=list, help_text="the locked gates of the round that measured it")
    sim = models.JSONField(null=True, help_text="that round's verdict on the checkpoint")
    sim_measured = models.JSONField(null=True, help_text="that round's measurement of each gate")
    # The newest one; those that ended without a start are found by their subject.
    approval = models.OneToOneField(Approval, models.PROTECT, null=True, related_name="trial")

    objects = TrialQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(name="one_trial_a_position", fields=["session", "position"])]

    @property
    def is_control(self) -> bool:
        return self.role == self.Role.CONTROL

    @property
    def has_started(self) -> bool:
        return self.approval is not None and self.approval.started_at is not None

    def __str__(self) -> str:
        return f"trial {self.position}"


def _status(at: datetime) -> Case:
    state = Approval.State
    is_overdue = Q(approval__state__in=Approval.EXPIRING, approval__expires_at__lte=at)
    return Case(
        When(approval=None, session__cancelled_at__isnull=False, then=Value("closed")),
        When(approval=None, then=Value("planned")),
        When(is_overdue | Q(approval__state__in=Approval.ENDED_WITHOUT_START), then=Value("closed")),
        When(approval__state=state.REQUESTED, then=Value("awaiting_approval")),
        When(approval__state=state.ISSUED, then=Value("ready")),
        When(approval__state=state.RUNNING, then=Value("running")),
        When(verdict__isnull=False, then=Value("decided")),
        When(log=None, then=Value("awaiting_log")),
        When(role=Trial.Role.CONTROL, then=Value("measured")),
        default=Value("needs_verdict"),
        output_field=models.CharField(),
    )
