from django.conf import settings
from django.db import models

from hub.campaigns.models import Checkpoint
from hub.core import ids
from trials.models.trial import Trial


class Verdict(models.Model):
    """What a person decided, with the criteria and the bracket as they stood."""

    class Option(models.TextChoices):
        PROMOTE = "promote"
        ITERATE = "iterate"
        STOP = "stop"

    id = ids.id_field("vrd")
    trial = models.OneToOneField(Trial, models.PROTECT, related_name="verdict")
    option = models.CharField(max_length=16, choices=Option)
    reason = models.TextField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    at = models.DateTimeField()
    bracket_acknowledged = models.BooleanField(default=False)
    replaces = models.ForeignKey(Checkpoint, models.PROTECT, null=True, related_name="+")
    criteria = models.JSONField()
    bracket = models.JSONField()
    rules_version = models.PositiveIntegerField()
