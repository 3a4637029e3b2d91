from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from hub.accounts.actors import SYSTEM
from hub.accounts.models import User
from hub.campaigns.models import Campaign
from hub.campaigns.services import agents, campaigns
from tests import factories
from tests.factories import NOON
from tests.hub.campaigns import factories as made

Counter = Any
SIGNED_IN = 2  # the session and its person


def fill(campaign: Campaign, *, step: int) -> None:
    """Two checkpoints, one from the other, a locked round that measured both, and one of them promoted."""
    parent = made.checkpoint(campaign, step=step)
    child = made.checkpoint(campaign, step=step + 1, parent=parent)
    made.round_of(campaign, made.result(parent), made.result(child), resumes_from=parent)
    campaigns.put_on_robot(campaign=campaign, checkpoint=child, trial_id="trl_1", by=SYSTEM, at=NOON)


@pytest.mark.parametrize(("path", "queries"), [("checkpoints", 4), ("rounds", 3)])
def test_a_campaigns_lists_take_the_same_queries_however_long(
    browser: APIClient,
    campaign: Campaign,
    path: str,
    queries: int,
    django_assert_num_queries: Callable[[int], Counter],
) -> None:
    fill(campaign, step=10)
    fill(campaign, step=20)
    fill(campaign, step=30)

    with django_assert_num_queries(SIGNED_IN + queries):
        said = browser.get(f"/api/v1/campaigns/{campaign.pk}/{path}").json()

    assert len(said["items"]) in {3, 6}


@pytest.mark.parametrize("path", ["robots", "campaigns", "agent-sessions"])
def test_the_lists_of_my_accounts_take_one_query(
    browser: APIClient,
    ana: User,
    path: str,
    django_assert_num_queries: Callable[[int], Counter],
) -> None:
    for slug in ("one", "two", "three"):
        campaign = made.campaign(ana.account, robot=made.robot(ana.account, slug=slug), name=slug)
        fill(campaign, step=10)
        agents.create_agent_session(campaign=campaign, name=slug, by=SYSTEM, at=NOON)

    with django_assert_num_queries(SIGNED_IN + 1):
        said = browser.get(f"/api/v1/{path}").json()

    assert len(said["items"]) == 3


def test_wakes_take_two_queries_beside_the_key(
    ana: User, campaign: Campaign, django_assert_num_queries: Callable[[int], Counter]
) -> None:
    session = agents.create_agent_session(campaign=campaign, name="one", by=SYSTEM, at=NOON)
    for _ in range(3):
        agents.wake_agents(campaign=campaign, payload={}, by=SYSTEM, at=NOON)
    program = factories.key_client(factories.api_key(ana))
    program.get("/api/v1/me")  # its use is noted once a minute

    with django_assert_num_queries(1 + 2):
        said = program.get(f"/api/v1/agent-sessions/{session.pk}/wakes").json()

    assert len(said["items"]) == 3


def test_lists_come_newest_first_and_in_pages(browser: APIClient, campaign: Campaign) -> None:
    steps = [made.checkpoint(campaign, step=step).step for step in range(1, 6)]
    path = f"/api/v1/campaigns/{campaign.pk}/checkpoints"

    first = browser.get(path, {"limit": 3}).json()
    rest = browser.get(path, {"limit": 3, "cursor": first["next"]}).json()

    assert [each["step"] for each in first["items"] + rest["items"]] == steps[::-1]
    assert rest["next"] is None
