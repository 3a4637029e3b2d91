"""Strangers are told nothing exists; who may see and not change is told so."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from rest_framework.test import APIClient

from hub.accounts.actors import SYSTEM
from hub.accounts.models import Account, User
from hub.campaigns.services import agents
from tests import factories
from tests.factories import NOON
from tests.hub.campaigns import factories as made

ROOT = "/api/v1"


@dataclass(frozen=True)
class There:
    """Everything that ana's lab has."""

    robot: str
    campaign: str
    checkpoint: str
    round: str
    agent_session: str
    wake: str


@pytest.fixture
def there(lab: Account) -> There:
    robot = made.robot(lab)
    campaign = made.campaign(lab, robot=robot)
    checkpoint = made.checkpoint(campaign)
    drafted = made.round_of(campaign, made.result(checkpoint), is_locked=False)
    session = agents.create_agent_session(campaign=campaign, name="drafter", by=SYSTEM, at=NOON)
    [wake] = agents.wake_agents(campaign=campaign, payload={}, by=SYSTEM, at=NOON)
    return There(robot.pk, campaign.pk, checkpoint.pk, drafted.pk, session.pk, wake.pk)


Call = Callable[[APIClient, There], Any]
READS: dict[str, Call] = {
    "getRobot": lambda api, there: api.get(f"{ROOT}/robots/{there.robot}"),
    "getCampaign": lambda api, there: api.get(f"{ROOT}/campaigns/{there.campaign}"),
    "listCheckpoints": lambda api, there: api.get(f"{ROOT}/campaigns/{there.campaign}/checkpoints"),
    "getCheckpoint": lambda api, there: api.get(f"{ROOT}/checkpoints/{there.checkpoint}"),
    "listRounds": lambda api, there: api.get(f"{ROOT}/campaigns/{there.campaign}/rounds"),
    "getRound": lambda api, there: api.get(f"{ROOT}/rounds/{there.round}"),
}
WRITES: dict[str, Call] = {
    "createCheckpoint": lambda api, there: api.post(f"{ROOT}/campaigns/{there.campaign}/checkpoints", {}),
    "completeCheckpoint": lambda api, there: api.post(f"{ROOT}/checkpoints/{there.checkpoint}/complete"),
    "createRound": lambda api, there: api.post(f"{ROOT}/campaigns/{there.campaign}/rounds", {}),
    "updateRound": lambda api, there: api.patch(f"{ROOT}/rounds/{there.round}", {"gates": 1}),
    "createAgentSession": lambda api, there: api.post(
        f"{ROOT}/agent-sessions", {"campaign": there.campaign, "name": "drafter"}
    ),
    "createCampaign": lambda api, there: api.post(
        f"{ROOT}/campaigns", {"robot": there.robot, "name": "walk", **_account(there)}
    ),
}
PERSONS: dict[str, Call] = {
    "updateCampaign": lambda api, there: api.patch(f"{ROOT}/campaigns/{there.campaign}", {"name": 1}),
    "lockRound": lambda api, there: api.post(f"{ROOT}/rounds/{there.round}/lock"),
}
PROGRAMS: dict[str, Call] = {
    "listWakes": lambda api, there: api.get(f"{ROOT}/agent-sessions/{there.agent_session}/wakes"),
    "ackWake": lambda api, there: api.post(f"{ROOT}/wakes/{there.wake}/ack"),
}
LISTS = ("robots", "campaigns", "agent-sessions")


def _account(there: There) -> dict[str, str]:
    return {"account": made.Robot.objects.get(pk=there.robot).owner_id}


def program(user: User, account: Account, *scopes: str) -> APIClient:
    return factories.key_client(factories.api_key(user, account=account, scopes=scopes))


@pytest.mark.parametrize("operation", [*READS, *WRITES, *PERSONS])
def test_a_stranger_is_not_told_that_it_exists(operation: str, there: There, eve: User) -> None:
    call = {**READS, **WRITES, **PERSONS}[operation]

    assert call(factories.client(eve), there).status_code == 404


@pytest.mark.parametrize("operation", [*READS, *WRITES, *PROGRAMS])
def test_neither_is_a_strangers_program(operation: str, there: There, eve: User) -> None:
    call = {**READS, **WRITES, **PROGRAMS}[operation]

    assert call(program(eve, eve.account, "key:write"), there).status_code == 404


@pytest.mark.parametrize("operation", [*READS, *WRITES, *PERSONS, *PROGRAMS])
def test_a_program_of_the_same_owners_other_account_sees_nothing(
    operation: str, there: There, ana: User
) -> None:
    call = {**READS, **WRITES, **PERSONS, **PROGRAMS}[operation]

    status = call(program(ana, ana.account, "key:write"), there).status_code

    assert status == (403 if operation in PERSONS else 404)


@pytest.mark.parametrize("operation", [*READS, *WRITES, *PERSONS, *PROGRAMS])
def test_nobody_does_anything_without_saying_who_they_are(operation: str, there: There) -> None:
    call = {**READS, **WRITES, **PERSONS, **PROGRAMS}[operation]

    assert call(factories.client(), there).status_code == 401


@pytest.mark.parametrize("operation", READS)
def test_members_operators_and_reading_programs_read(
    operation: str, there: There, ana: User, mo: User, oto: User, lab: Account
) -> None:
    readers = [factories.client(mo), factories.client(oto), program(ana, lab, "key:read")]

    assert [READS[operation](reader, there).status_code for reader in readers] == [200, 200, 200]


@pytest.mark.parametrize("operation", [*WRITES, *PERSONS])
def test_an_operator_changes_nothing_whatever_the_body(operation: str, there: There, oto: User) -> None:
    response = {**WRITES, **PERSONS}[operation](factories.client(oto), there)

    assert response.status_code == 403
    assert response.json()["type"].endswith("/role-forbidden")


@pytest.mark.parametrize("operation", [*WRITES, *PROGRAMS])
def test_a_program_that_only_reads_changes_nothing(
    operation: str, there: There, ana: User, lab: Account
) -> None:
    response = {**WRITES, **PROGRAMS}[operation](program(ana, lab, "key:read"), there)

    assert response.status_code == 403
    assert response.json()["type"].endswith("/scope-missing")


@pytest.mark.parametrize("operation", PERSONS)
def test_what_persons_decide_no_program_does(operation: str, there: There, ana: User, lab: Account) -> None:
    response = PERSONS[operation](program(ana, lab, "key:write"), there)

    assert response.status_code == 403
    assert response.json()["type"].endswith("/persons-only")


@pytest.mark.parametrize("path", LISTS)
def test_lists_hold_what_my_accounts_own_and_nothing_else(
    path: str, there: There, ana: User, eve: User
) -> None:
    assert len(factories.client(ana).get(f"{ROOT}/{path}").json()["items"]) == 1
    assert factories.client(eve).get(f"{ROOT}/{path}").json() == {"items": [], "next": None}


def test_filters_only_narrow(there: There, eve: User, lab: Account) -> None:
    browser = factories.client(eve)

    assert browser.get(f"{ROOT}/campaigns", {"account": lab.pk}).json()["items"] == []
    assert browser.get(f"{ROOT}/campaigns", {"robot": there.robot}).json()["items"] == []
    assert browser.get(f"{ROOT}/robots", {"slug": "stilt"}).json()["items"] == []
    assert browser.get(f"{ROOT}/agent-sessions", {"campaign": there.campaign}).json()["items"] == []
