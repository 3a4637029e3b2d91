from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Q

from hub.core import ids

if TYPE_CHECKING:
    from datetime import datetime


class JobQuerySet(models.QuerySet["Job"]):
    def due(self, *, at: "datetime") -> "JobQuerySet":
        """What may be claimed now: waiting and ripe, or left by a worker whose lease ran out."""
        return self.filter(
            Q(state=Job.State.QUEUED, run_after__lte=at) | Q(state=Job.State.RUNNING, lease_until__lt=at)
        )

    def open(self) -> "JobQuerySet":
        return self.filter(state__in=[Job.State.QUEUED, Job.State.RUNNING])


class Job(models.Model):
    """Work to be done after a change, written with the change. This row is the truth about it."""

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"

    id = ids.id_field("job")
    kind = models.CharField(max_length=64)
    args = models.JSONField(default=dict)
    unique_key = models.CharField(max_length=200, null=True)
    state = models.CharField(max_length=8, choices=State, default=State.QUEUED)
    attempts = models.PositiveIntegerField(default=0)
    run_after = models.DateTimeField()
    lease_until = models.DateTimeField(null=True)
    owner = models.CharField(max_length=100, default="")
    last_error = models.TextField(default="")
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    objects = JobQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="one_open_job_a_key",
                fields=["unique_key"],
                condition=Q(state__in=["queued", "running"]),
            ),
            models.CheckConstraint(
                name="a_running_job_has_a_lease",
                condition=Q(state="running", lease_until__isnull=False)
                | (~Q(state="running") & Q(lease_until=None)),
            ),
        ]
        indexes = [models.Index(fields=["state", "run_after"])]

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"
