from rest_framework.test import APIClient

from hub.accounts.actors import SYSTEM
from hub.accounts.models import User
from hub.audit.models import Event
from hub.campaigns.models import Campaign, Wake
from hub.campaigns.services import agents
from tests import factories
from tests.factories import NOON
from tests.hub.campaigns import factories as made

PAYLOAD = {"verdict": "iterate", "trial": "trl_1", "summary": {"tilt_mean_deg": 1.18}}


def attach(client: APIClient, campaign: Campaign, name: str = "drafter") -> str:
    response = client.post("/api/v1/agent-sessions", {"campaign": campaign.pk, "name": name})
    assert response.status_code == 201
    return str(response.json()["id"])


def test_an_attached_agent_is_woken_and_says_that_it_has_it(ana: User, campaign: Campaign) -> None:
    program = factories.key_client(factories.api_key(ana))
    session = attach(program, campaign)
    [wake] = agents.wake_agents(campaign=campaign, payload=PAYLOAD, by=SYSTEM, at=NOON)

    waiting = program.get(f"/api/v1/agent-sessions/{session}/wakes", {"state": "waiting"}).json()["items"]
    acked = program.post(f"/api/v1/wakes/{wake.pk}/ack").json()

    assert [(each["id"], each["payload"], each["acked_at"]) for each in waiting] == [(wake.pk, PAYLOAD, None)]
    assert acked["acked_at"] is not None
    still = program.get(f"/api/v1/agent-sessions/{session}/wakes", {"state": "waiting"}).json()["items"]
    assert still == []
    gone = program.get(f"/api/v1/agent-sessions/{session}/wakes", {"state": "acked"}).json()["items"]
    assert gone == [acked]


def test_every_agent_of_the_campaign_is_woken_and_no_other(ana: User, campaign: Campaign) -> None:
    program = factories.key_client(factories.api_key(ana))
    mine = {attach(program, campaign, name) for name in ("one", "two")}
    attach(program, made.campaign(ana.account, name="other"))

    woken = agents.wake_agents(campaign=campaign, payload=PAYLOAD, by=SYSTEM, at=NOON)

    assert {wake.agent_session_id for wake in woken} == mine
    assert Event.objects.get(action="agent.woken").sentence == "the hub woke one, two on walk."


def test_where_no_agent_is_attached_nobody_is_woken(campaign: Campaign) -> None:
    assert agents.wake_agents(campaign=campaign, payload=PAYLOAD, by=SYSTEM, at=NOON) == []
    assert not Event.objects.filter(action="agent.woken").exists()


def test_saying_it_twice_changes_nothing(ana: User, campaign: Campaign) -> None:
    program = factories.key_client(factories.api_key(ana))
    attach(program, campaign)
    [wake] = agents.wake_agents(campaign=campaign, payload=PAYLOAD, by=SYSTEM, at=NOON)

    first = program.post(f"/api/v1/wakes/{wake.pk}/ack")
    second = program.post(f"/api/v1/wakes/{wake.pk}/ack")

    assert first.json() == second.json()
    assert Event.objects.filter(action="wake.acked").count() == 1


def test_wakes_are_for_programs(browser: APIClient, campaign: Campaign) -> None:
    session = attach(browser, campaign)
    agents.wake_agents(campaign=campaign, payload=PAYLOAD, by=SYSTEM, at=NOON)

    assert browser.get(f"/api/v1/agent-sessions/{session}/wakes").status_code == 403
    assert browser.post(f"/api/v1/wakes/{Wake.objects.get().pk}/ack").status_code == 403


def test_agents_are_listed_by_campaign(browser: APIClient, ana: User, campaign: Campaign) -> None:
    session = attach(browser, campaign)
    attach(browser, made.campaign(ana.account, name="other"))

    found = browser.get("/api/v1/agent-sessions", {"campaign": campaign.pk}).json()["items"]

    assert [each["id"] for each in found] == [session]
