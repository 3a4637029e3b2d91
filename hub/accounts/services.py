import secrets
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from hub.accounts import actors, auth
from hub.accounts.actors import SYSTEM, Actor
from hub.accounts.models import (
    Account,
    ApiKey,
    Membership,
    OwnerLink,
    Role,
    User,
    normal_email,
)
from hub.accounts.permissions import may_manage
from hub.audit import services as audit
from hub.core.problems import Conflict, NotFound, Unprocessable


class EmailTaken(Conflict):
    slug = "email-taken"
    title = "Somebody signs in with this address already."


class NotAnOrg(Conflict):
    slug = "not-an-org"
    title = "A person's own account has no other members."


class MemberAlready(Conflict):
    slug = "member-already"
    title = "This person has a role in the org already."


class LinkSpent(NotFound):
    slug = "link-spent"
    title = "This link is used, expired or unknown."


class TooManyKeys(Conflict):
    slug = "too-many-keys"
    title = "This account has as many keys as it may have."


@dataclass(frozen=True)
class NewKey:
    """A key as its maker sees it, once: the row and the secret that is not kept."""

    key: ApiKey
    secret: str


@transaction.atomic
def create_person(*, email: str, name: str, by: Actor, at: datetime, password: str | None = None) -> User:
    """
    Give a person an account of their own. Without a password they choose one through a link.

    :raises EmailTaken: when the address is in use
    """
    email = normal_email(email)
    user = User(email=email, name=name, created_at=at)
    user.set_password(password)
    try:
        with transaction.atomic():
            user.save(force_insert=True)
    except IntegrityError:  # the address is unique in the database, whoever comes first
        raise EmailTaken from None
    account = Account.objects.create(kind=Account.Kind.PERSON, name=name, person=user, created_at=at)
    Membership.objects.create(account=account, user=user, role=Role.OWNER, created_at=at)
    audit.record(
        "account.created",
        by=by,
        account_id=account.pk,
        target=account,
        at=at,
        sentence=f"{by.label} gave {email} an account.",
    )
    return user


@transaction.atomic
def create_org(*, name: str, owner: User, by: Actor, at: datetime) -> Account:
    """Found an org, with its first owner."""
    account = Account.objects.create(kind=Account.Kind.ORG, name=name, created_at=at)
    Membership.objects.create(account=account, user=owner, role=Role.OWNER, created_at=at)
    audit.record(
        "account.created",
        by=by,
        account_id=account.pk,
        target=account,
        at=at,
        sentence=f"{by.label} founded {name}, owned by {owner.email}.",
    )
    return account


@transaction.atomic
def add_member(*, account: Account, user: User, role: Role, by: Actor, at: datetime) -> Membership:
    """
    Give a person a role in an org.

    :raises NotAnOrg: for a person's own account, which has one owner and nobody else
    :raises MemberAlready: when they have a role there
    """
    if account.kind != Account.Kind.ORG:
        raise NotAnOrg
    try:
        with transaction.atomic():
            membership = Membership.objects.create(account=account, user=user, role=role, created_at=at)
    except IntegrityError:
        raise MemberAlready from None
    audit.record(
        "member.added",
        by=by,
        account_id=account.pk,
        target=membership,
        at=at,
        sentence=f"{by.label} made {user.email} {role} of {account.name}.",
        role=str(role),
    )
    return membership


@transaction.atomic
def make_owner_link(*, user: User | None = None, by: Actor, at: datetime) -> str:
    """Make the secret of a one-time link: for a person to choose a password, or for a hub's first owner."""
    secret = secrets.token_urlsafe(32)
    link = OwnerLink.objects.create(
        user=user, token_sha256=auth.hash_secret(secret), expires_at=at + settings.OWNER_LINK_FOR
    )
    audit.record(
        "owner-link.made",
        by=by,
        account_id=user.account.pk if user else "",
        target=link,
        at=at,
        sentence=f"{by.label} made a one-time link for {user.email if user else 'the first owner'}.",
    )
    return secret


def find_owner_link(secret: str, *, at: datetime) -> OwnerLink:
    """
    Find the open link of a secret. Links for the first owner end with the first owner's arrival.

    :raises LinkSpent: when it is used, expired or unknown
    """
    links = OwnerLink.objects.select_related("user")
    link = links.filter(token_sha256=auth.hash_secret(secret), used_at=None, expires_at__gt=at).first()
    if link is None or (link.user is None and User.objects.exists()):
        raise LinkSpent
    return link


@transaction.atomic
def use_owner_link(*, secret: str, password: str, at: datetime, email: str = "", name: str = "") -> User:
    """
    Set the password a person chose, and spend the link. Name and address count where it makes a first owner.

    :raises LinkSpent: when it is used, expired or unknown
    :raises Unprocessable: for a password too easy to guess
    """
    link = find_owner_link(secret, at=at)
    if not OwnerLink.objects.filter(pk=link.pk, used_at=None).update(used_at=at):  # two browsers at once
        raise LinkSpent
    user = link.user or create_person(email=email, name=name, by=SYSTEM, at=at)
    _check_password(password, user)
    user.set_password(password)
    user.save(update_fields=["password"])
    audit.record(
        "owner-link.used",
        by=actors.person(user),
        account_id=user.account.pk,
        target=link,
        at=at,
        sentence=f"{user.email} chose a password through a one-time link.",
    )
    return user


@transaction.atomic
def create_api_key(
    *, account: Account, name: str, scopes: list[str], expires_at: datetime | None, by: Actor, at: datetime
) -> NewKey:
    """
    Make a key for a program that works for an account. The secret is in the answer and nowhere else.

    :raises RoleForbidden: for everybody but an owner
    :raises TooManyKeys: beyond the cap of an account
    """
    may_manage(by, account)
    account = Account.objects.select_for_update().get(pk=account.pk)  # the cap is counted under it
    if account.api_keys.usable(at=at).count() >= settings.API_KEYS_PER_ACCOUNT:
        raise TooManyKeys(f"It may have {settings.API_KEYS_PER_ACCOUNT}. Revoke one first.")
    if expires_at is not None and expires_at <= at:
        raise Unprocessable(errors={"expires_at": ["This must lie ahead."]})
    secret = auth.KEY_PREFIX + secrets.token_urlsafe(32)
    key = ApiKey.objects.create(
        account=account,
        created_by=by.person,
        name=name,
        prefix=secret[:12],
        secret_sha256=auth.hash_secret(secret),
        scopes=sorted(set(scopes)),
        created_at=at,
        expires_at=expires_at,
    )
    audit.record(
        "key.created",
        by=by,
        account_id=account.pk,
        target=key,
        at=at,
        sentence=f"{by.label} made the API key {key.prefix}… ({name}) for {account.name}.",
        scopes=key.scopes,
    )
    return NewKey(key, secret)


@transaction.atomic
def revoke_api_key(*, key: ApiKey, by: Actor, at: datetime) -> ApiKey:
    """
    End a key, at once and for good. A second time changes nothing.

    :raises RoleForbidden: for everybody but an owner
    """
    may_manage(by, key.account)
    key = ApiKey.objects.select_for_update().select_related("account").get(pk=key.pk)
    if key.revoked_at is not None:
        return key
    key.revoked_at = at
    key.save(update_fields=["revoked_at"])
    audit.record(
        "key.revoked",
        by=by,
        account_id=key.account_id,
        target=key,
        at=at,
        sentence=f"{by.label} revoked the API key {key.prefix}… ({key.name}) of {key.account.name}.",
    )
    return key


def _check_password(password: str, user: User) -> None:
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise Unprocessable(errors={"password": error.messages}) from error
