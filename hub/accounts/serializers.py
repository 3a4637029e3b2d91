from typing import Any

from rest_framework import serializers

from hub.accounts.actors import Actor
from hub.accounts.models import ApiKey, Membership, Scope
from hub.accounts.services import NewKey
from hub.core import fields


class AccountAnswer(serializers.Serializer[Any]):
    id = fields.Text()
    kind = fields.Text()
    name = fields.Text()
    role = fields.Text(allow_null=True)


class MeAnswer(serializers.Serializer[Any]):
    """Who I am to the hub, and what I speak for."""

    kind = fields.Text()
    name = fields.Text()
    user = fields.Text(allow_null=True)
    accounts = AccountAnswer(many=True)
    scopes = fields.ListOf(fields.Text(), max_length=10, allow_null=True)
    signed_in_at = fields.Moment(allow_null=True)


class ApiKeyAnswer(serializers.Serializer[ApiKey]):
    id = fields.Text()
    account = fields.Text(source="account_id")
    name = fields.Text()
    prefix = fields.Text()
    scopes = fields.ListOf(fields.Text(), max_length=10)
    created_at = fields.Moment()
    expires_at = fields.Moment(allow_null=True)
    last_used_at = fields.Moment(allow_null=True)
    revoked_at = fields.Moment(allow_null=True)


class NewKeyAnswer(serializers.Serializer[NewKey]):
    key = ApiKeyAnswer()
    secret = fields.Text()


class ActivityAnswer(serializers.Serializer[Any]):
    id = fields.Text()
    action = fields.Text()
    actor = fields.Text()
    actor_kind = fields.Text()
    account = fields.Text(source="account_id")
    target = fields.Text()
    sentence = fields.Text()
    at = fields.Moment()


class CreateApiKey(fields.Body):
    account = fields.Text(max_length=32, required=False)
    name = fields.Text(max_length=100)
    scopes = fields.ListOf(fields.Choice(Scope.choices), min_length=1, max_length=len(Scope.choices))
    expires_at = fields.Moment(required=False, allow_null=True)


class ActivityQuery(fields.Body):
    account = fields.Text(source="account_id", max_length=32, required=False)
    action = fields.Text(max_length=64, required=False)
    target = fields.Text(max_length=100, required=False)


def me(by: Actor) -> dict[str, Any]:
    roles = dict(Membership.objects.filter(user=by.user).values_list("account_id", "role")) if by.user else {}
    return {
        "kind": by.kind,
        "name": by.label,
        "user": by.user and by.user.pk,
        "accounts": [
            {"id": account.pk, "kind": account.kind, "name": account.name, "role": roles.get(account.pk)}
            for account in by.accounts().order_by("pk")
        ],
        "scopes": by.key and by.key.scopes,
        "signed_in_at": by.signed_in_at,
    }
