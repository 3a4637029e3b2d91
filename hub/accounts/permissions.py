"""Which kind of actor may call at all, and which role may do what for an account."""

from datetime import datetime

from django.conf import settings

from hub.accounts.actors import Actor, Kind
from hub.accounts.models import Account, ApiKey, Role, Scope
from hub.core.problems import CsrfRefused, Forbidden, Problem

PERSON, READ, WRITE, DEVICE, ANYONE = "S", "R", "W", "D", "A"


class PersonsOnly(Forbidden):
    slug = "persons-only"
    title = "Only a person can do this."


class NotForPersons(Forbidden):
    slug = "not-for-persons"
    title = "A program does this, not a person."


class NotForDevices(Forbidden):
    slug = "not-for-devices"
    title = "A device does not do this."


class NotForKeys(Forbidden):
    slug = "not-for-keys"
    title = "An API key does not do this."


class ScopeMissing(Forbidden):
    slug = "scope-missing"
    title = "The key's scopes do not cover this."


class RoleForbidden(Forbidden):
    slug = "role-forbidden"
    title = "Your role in this account does not allow this."


class RecentSignInNeeded(Forbidden):
    slug = "recent-sign-in-required"
    title = "Sign in again first."


def check_kind(by: Actor, *, who: str) -> None:
    """
    Let through the kinds of caller an operation is for, in the letters of its `x-who`.

    :raises Forbidden: for every other kind, and for a key without the scope
    """
    if ANYONE in who:
        return
    match by.kind:
        case Kind.PERSON if PERSON not in who:
            raise NotForPersons
        case Kind.DEVICE if DEVICE not in who:
            raise PersonsOnly if who == PERSON else NotForDevices
        case Kind.KEY if by.key is not None:
            _check_scope(by.key, who=who)


def refusals(*, who: str, is_change: bool) -> list[type[Problem]]:
    """How an operation refuses callers of another kind, and those whose token, scope or role does not do."""
    found: list[type[Problem]] = []
    if is_change:
        found += [CsrfRefused]
    if ANYONE in who:
        return found
    found += [RoleForbidden] if is_change and PERSON in who else []
    found += [NotForPersons] if PERSON not in who else []
    found += [NotForDevices] if DEVICE not in who and who != PERSON else []
    if READ not in who:
        found += [ScopeMissing] if WRITE in who else [PersonsOnly if PERSON in who else NotForKeys]
    return found


def may_plan(by: Actor, account: Account) -> None:
    """
    Let owners, members and keys that write plan, draft and withdraw.

    :raises RoleForbidden: for an operator
    """
    if by.key is not None:
        _key_may_write(by, account)
    else:
        _role_among(by, account, Role.OWNER, Role.MEMBER)


def may_decide(by: Actor, account: Account) -> None:
    """
    Let a person consent or judge: an owner or a member, never a program.

    :raises PersonsOnly: for a key or a device
    :raises RoleForbidden: for an operator
    """
    if not by.is_person:
        raise PersonsOnly
    _role_among(by, account, Role.OWNER, Role.MEMBER)


def may_manage(by: Actor, account: Account) -> None:
    """
    Let an owner manage keys, devices and members.

    :raises RoleForbidden: for everybody else
    """
    if not by.is_person:
        raise PersonsOnly
    _role_among(by, account, Role.OWNER)


def signed_in_recently(by: Actor, *, at: datetime) -> None:
    """
    Ask for a sign-in young enough for consent and verdict.

    :raises RecentSignInNeeded: for an older session
    """
    if by.signed_in_at is None or at - by.signed_in_at >= settings.RECENT_SIGN_IN:
        hours = settings.RECENT_SIGN_IN.total_seconds() / 3600
        raise RecentSignInNeeded(
            f"Consent and verdict need a sign-in younger than {hours:g} hours.",
            signed_in_at=by.signed_in_at and by.signed_in_at.isoformat(),
        )


def _check_scope(key: ApiKey, *, who: str) -> None:
    if READ not in who and WRITE not in who:
        raise PersonsOnly if PERSON in who else NotForKeys
    needed, has = (Scope.READ, key.may_read) if READ in who else (Scope.WRITE, key.may_write)
    if not has:
        raise ScopeMissing(f"It needs {needed}.", needed=str(needed))


def _key_may_write(by: Actor, account: Account) -> None:
    if by.key is None or by.key.account_id != account.pk:
        raise RoleForbidden("The key speaks for another account.")
    if not by.key.may_write:
        raise ScopeMissing(f"It needs {Scope.WRITE}.", needed=str(Scope.WRITE))


def _role_among(by: Actor, account: Account, *roles: Role) -> None:
    role = by.role_in(account)
    if role not in roles:
        allowed = " or ".join(f"an {role}" if role[0] in "aeiou" else f"a {role}" for role in roles)
        raise RoleForbidden(f"This takes {allowed} of {account.name}.", role=role and str(role))
