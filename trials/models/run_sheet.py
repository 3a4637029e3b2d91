from django.db import models

from hub.core import ids
from trials.models.trial import Trial


class RunSheet(models.Model):
    """What will be done, written before anything runs. From `locked_at` on it is what a person approved."""

    id = ids.id_field("rsh")
    trial = models.OneToOneField(Trial, models.CASCADE, related_name="run_sheet")
    document = models.JSONField()
    digest = models.CharField(max_length=64)
    locked_at = models.DateTimeField(null=True)
    updated_at = models.DateTimeField()
