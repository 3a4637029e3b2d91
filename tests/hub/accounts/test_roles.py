import pytest

from hub.accounts import actors, services
from hub.accounts.actors import SYSTEM
from hub.accounts.models import Account, Membership, Role
from hub.accounts.permissions import may_decide, may_manage, may_plan
from hub.core.problems import Forbidden
from tests import factories
from tests.factories import NOON
from tests.races import at_once

ALLOWED = {
    may_plan: {"owner", "member", "write key"},
    may_decide: {"owner", "member"},
    may_manage: {"owner"},
}


@pytest.fixture
def everybody(ana, lab, mo, oto, eve):
    return {
        "owner": factories.actor(ana),
        "member": factories.actor(mo),
        "operator": factories.actor(oto),
        "stranger": factories.actor(eve),
        "write key": actors.key(factories.api_key(ana, account=lab).key),
        "read key": actors.key(factories.api_key(ana, account=lab, scopes=("key:read",)).key),
        "key of another account": actors.key(factories.api_key(ana).key),
        "device": actors.device("dev_1"),
        "nobody": actors.ANYBODY,
    }


@pytest.mark.parametrize("rule", ALLOWED)
def test_each_role_may_what_the_table_says_and_no_more(everybody, lab, rule):
    passed = set()
    for name, by in everybody.items():
        try:
            rule(by, lab)
        except Forbidden:
            continue
        passed.add(name)

    assert passed == ALLOWED[rule]


def test_what_an_actor_speaks_for_is_all_it_sees(everybody, lab, ana, eve):
    sees = {name: set(by.accounts()) for name, by in everybody.items()}

    assert sees == {
        "owner": {lab, ana.account},
        "member": {lab, *Account.objects.filter(name="mo")},
        "operator": {lab, *Account.objects.filter(name="oto")},
        "stranger": {eve.account},
        "write key": {lab},
        "read key": {lab},
        "key of another account": {ana.account},
        "device": set(),
        "nobody": set(),
    }


def test_a_persons_own_account_has_one_owner_and_takes_nobody_else(ana, eve):
    with pytest.raises(services.NotAnOrg):
        services.add_member(account=ana.account, user=eve, role=Role.MEMBER, by=SYSTEM, at=NOON)

    assert Membership.objects.get(account=ana.account).role == Role.OWNER


def test_a_person_has_one_role_in_an_org(lab, mo):
    with pytest.raises(services.MemberAlready):
        services.add_member(account=lab, user=mo, role=Role.OWNER, by=SYSTEM, at=NOON)


def test_an_address_is_one_person_however_it_is_spelt(ana):
    with pytest.raises(services.EmailTaken):
        services.create_person(email=" ANA@Lab.Test ", name="other", by=SYSTEM, at=NOON)


@pytest.mark.django_db(transaction=True)
def test_of_five_who_give_one_address_an_account_at_once_one_does():
    answers = at_once(*[factories.person] * 5)

    assert sum(isinstance(answer, services.EmailTaken) for answer in answers) == 4
    assert Account.objects.count() == 1
