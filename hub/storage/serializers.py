from typing import Any

from rest_framework import serializers

from hub.core import fields


class UsageOfAccount(serializers.Serializer[Any]):
    account = fields.Text()
    name = fields.Text()
    bytes = fields.Integer(max_value=fields.MAX_NUMBER)
    reserved_bytes = fields.Integer(max_value=fields.MAX_NUMBER)
    quota_bytes = fields.Integer(max_value=fields.MAX_NUMBER)


class UsageAnswer(serializers.Serializer[Any]):
    """What each account I speak for holds in object storage; reservations count from the start."""

    items = UsageOfAccount(many=True)
