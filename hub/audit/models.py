from django.db import models

from hub.core import ids


class Event(models.Model):
    """One thing somebody did. No foreign keys: a record outlives what it is about."""

    id = ids.id_field("evt")
    action = models.CharField(max_length=64)
    actor_kind = models.CharField(max_length=16)
    actor = models.CharField(max_length=254)
    account_id = models.CharField(max_length=32)
    target = models.CharField(max_length=100)
    sentence = models.TextField()
    data = models.JSONField(default=dict)
    at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(fields=["account_id", "id"]),
            models.Index(fields=["target", "id"]),
        ]

    def __str__(self) -> str:
        return self.sentence
