from django.db import models
from django.db.models import Q

from devices.models import Approval
from hub.core import ids
from hub.storage.models import StoredObject
from trials.models.trial import Trial


class LogUpload(models.Model):
    """A URL that was handed out for one file: where the box may put it, and what it said it would put."""

    trial = models.ForeignKey(Trial, models.CASCADE, related_name="log_uploads")
    attempt = models.CharField(max_length=32)
    name = models.CharField(max_length=80)
    stage = models.CharField(max_length=80)
    bytes = models.PositiveBigIntegerField()
    sha256 = models.CharField(max_length=64)
    object = models.ForeignKey(StoredObject, models.PROTECT, related_name="+")
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(name="one_file_an_attempt", fields=["attempt", "name"])]


class TrialLog(models.Model):
    """The driver's signed word on a run, kept as the bytes it signed."""

    class State(models.TextChoices):
        UPLOADED = "uploaded"
        MISSING = "missing"
        MALFORMED = "malformed"

    id = ids.id_field("log")
    trial = models.OneToOneField(Trial, models.PROTECT, related_name="log")
    approval = models.OneToOneField(Approval, models.PROTECT, related_name="log")
    state = models.CharField(max_length=16, choices=State)
    statement = models.BinaryField()
    signature = models.CharField(max_length=128)
    kid = models.CharField(max_length=16)
    summary = models.JSONField(null=True)
    detail = models.TextField(default="", blank=True)
    hub_check = models.JSONField()
    recorded_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="an_uploaded_log_has_a_summary",
                condition=~Q(state="uploaded") | Q(summary__isnull=False),
            )
        ]


class TrialLogFile(models.Model):
    log = models.ForeignKey(TrialLog, models.CASCADE, related_name="files")
    number = models.PositiveSmallIntegerField(help_text="place in the statement, which is stage order")
    name = models.CharField(max_length=80)
    stage = models.CharField(max_length=80)
    sha256 = models.CharField(max_length=64)
    bytes = models.PositiveBigIntegerField()
    rows = models.PositiveBigIntegerField(null=True, help_text="null for what is no version 1 log")
    object = models.ForeignKey(StoredObject, models.PROTECT, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(name="one_log_file_a_name", fields=["log", "name"])]
