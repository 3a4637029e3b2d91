"""Whose a new thing becomes."""

from django.db.models import Q, QuerySet

from hub.accounts import permissions
from hub.accounts.actors import Actor
from hub.accounts.models import Account, Role
from hub.core.problems import NotFound, Unprocessable


def account_to_plan_for(by: Actor, named: str | None) -> Account:
    """
    The account named, else the only one that the actor may plan for.

    :raises NotFound: for an account that the actor does not see
    :raises RoleForbidden: for one it sees and may not plan for
    :raises Unprocessable: when none is named and there are several
    """
    seen = by.accounts()
    if named is None:
        choice = list(_planned_for(by)[:2]) or list(seen[:1])
    else:
        choice = list(seen.filter(pk=named))
    if len(choice) > 1:
        raise Unprocessable(errors={"account": ["You may plan for several accounts: name the one."]})
    if not choice:
        raise NotFound
    permissions.may_plan(by, choice[0])
    return choice[0]


def _planned_for(by: Actor) -> QuerySet[Account]:
    if by.user is None:
        return by.accounts()
    planning = Q(memberships__user=by.user, memberships__role__in=[Role.OWNER, Role.MEMBER])
    return Account.objects.filter(planning).order_by("pk")
