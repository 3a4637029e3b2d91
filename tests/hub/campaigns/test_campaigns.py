import pytest
from rest_framework.test import APIClient

from hub.accounts.actors import SYSTEM
from hub.accounts.models import Account, User
from hub.audit.models import Event
from hub.campaigns.models import Campaign
from hub.campaigns.services import campaigns
from tests import factories
from tests.factories import NOON
from tests.hub.campaigns import factories as made

CAMPAIGNS = "/api/v1/campaigns"


def test_a_campaign_starts_with_nothing_on_the_robot(browser: APIClient, ana: User) -> None:
    robot = made.robot(ana.account)

    response = browser.post(CAMPAIGNS, {"robot": robot.pk, "name": "Walk straight"})

    assert response.status_code == 201
    said = response.json()
    assert (said["name"], said["account"]) == ("Walk straight", ana.account.pk)
    assert (said["robot"], said["robot_slug"]) == (robot.pk, "stilt")
    assert said["fail_ends_lineage"] is True
    assert (said["policy_on_robot"], said["lineage"]) == (None, [])
    assert browser.get(f"{CAMPAIGNS}/{said['id']}").json() == said


def test_a_campaign_is_on_a_robot_of_its_own_account(browser: APIClient, ana: User, lab: Account) -> None:
    robot = made.robot(lab)

    response = browser.post(CAMPAIGNS, {"account": ana.account.pk, "robot": robot.pk, "name": "walk"})

    assert response.status_code == 422
    assert "robot" in response.json()["errors"]


def test_a_robot_one_does_not_see_is_not_there(browser: APIClient, eve: User) -> None:
    robot = made.robot(eve.account)

    assert browser.post(CAMPAIGNS, {"robot": robot.pk, "name": "walk"}).status_code == 404


def test_name_and_rule_change_and_the_record_says_how(browser: APIClient, campaign: Campaign) -> None:
    changes = {"name": "Walk on carpet", "fail_ends_lineage": False}

    response = browser.patch(f"{CAMPAIGNS}/{campaign.pk}", changes)

    assert response.status_code == 200
    assert (response.json()["name"], response.json()["fail_ends_lineage"]) == ("Walk on carpet", False)
    event = Event.objects.get(action="campaign.changed")
    assert event.sentence == (
        "ana@lab.test changed the campaign Walk on carpet: it has a new name, "
        "a FAIL in simulation ends no lineage."
    )


def test_what_is_absent_from_a_patch_stays_as_it_is(browser: APIClient, campaign: Campaign) -> None:
    browser.patch(f"{CAMPAIGNS}/{campaign.pk}", {"fail_ends_lineage": False})

    campaign.refresh_from_db()
    assert (campaign.name, campaign.fail_ends_lineage) == ("walk", False)


def test_saying_what_a_campaign_says_already_leaves_no_event(browser: APIClient, campaign: Campaign) -> None:
    assert browser.patch(f"{CAMPAIGNS}/{campaign.pk}", {"name": "walk"}).status_code == 200

    assert not Event.objects.filter(action="campaign.changed").exists()


@pytest.mark.parametrize(
    "change", [{"name": None}, {"name": ""}, {"fail_ends_lineage": None}, {"fail_ends_lineage": "no"}]
)
def test_name_and_rule_cannot_be_cleared(browser: APIClient, campaign: Campaign, change: object) -> None:
    assert browser.patch(f"{CAMPAIGNS}/{campaign.pk}", change).status_code == 422


@pytest.mark.parametrize("field", ["policy_on_robot", "robot", "account", "lineage"])
def test_the_policy_on_the_robot_is_no_field_to_patch(
    browser: APIClient, campaign: Campaign, field: str
) -> None:
    response = browser.patch(f"{CAMPAIGNS}/{campaign.pk}", {field: None})

    assert response.status_code == 422
    assert field in response.json()["errors"]


def test_a_program_changes_no_campaign(ana: User, campaign: Campaign) -> None:
    program = factories.key_client(factories.api_key(ana))

    response = program.patch(f"{CAMPAIGNS}/{campaign.pk}", {"name": "mine"})

    assert response.status_code == 403
    assert response.json()["type"].endswith("/persons-only")


def test_the_policy_on_the_robot_is_shown_with_its_verdict_and_its_line(
    browser: APIClient, campaign: Campaign
) -> None:
    root = made.checkpoint(campaign, step=400)
    child = made.checkpoint(campaign, step=700, parent=root)

    campaigns.put_on_robot(campaign=campaign, checkpoint=child, trial_id="trl_1", by=SYSTEM, at=NOON)

    said = browser.get(f"{CAMPAIGNS}/{campaign.pk}").json()
    assert said["policy_on_robot"] == {
        "checkpoint": child.pk,
        "run": "walk-7",
        "step": 700,
        "trial": "trl_1",
        "at": "2026-01-05T12:00:00.000Z",
    }
    assert [(each["checkpoint"], each["step"]) for each in said["lineage"]] == [
        (child.pk, 700),
        (root.pk, 400),
    ]


def test_the_record_of_a_new_policy_says_what_it_replaces(campaign: Campaign) -> None:
    old, new = made.checkpoint(campaign, step=700), made.checkpoint(campaign, step=800)
    campaigns.put_on_robot(campaign=campaign, checkpoint=old, trial_id="trl_1", by=SYSTEM, at=NOON)

    campaigns.put_on_robot(campaign=campaign, checkpoint=new, trial_id="trl_2", by=SYSTEM, at=NOON)

    campaign.refresh_from_db()
    assert (campaign.policy_on_robot, campaign.policy_trial_id) == (new, "trl_2")
    event = Event.objects.filter(action="campaign.policy").latest("pk")
    assert event.sentence == "the hub put walk-7 step 800 on the robot of walk instead of walk-7 step 700."
    assert event.data == {"checkpoint": new.pk, "replaces": old.pk, "trial": "trl_2"}
