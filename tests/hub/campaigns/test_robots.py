from rest_framework.test import APIClient

from hub.accounts.models import Account, User
from hub.campaigns.models import Robot
from tests import factories
from tests.hub.campaigns import factories as made

ROBOTS = "/api/v1/robots"


def test_a_robot_is_made_of_its_file_and_shows_its_pairs(browser: APIClient, ana: User) -> None:
    response = browser.post(ROBOTS, made.ROBOT_FILE)

    assert response.status_code == 201
    said = response.json()
    assert (said["slug"], said["account"], len(said["joints"])) == ("stilt", ana.account.pk, 12)
    pairs = {pair["name"]: pair for pair in said["pairs"]}
    assert pairs["knee"] == {"name": "knee", "left": "left_knee", "right": "right_knee", "mirror": 1}
    assert pairs["hip_roll"]["mirror"] == -1
    assert browser.get(f"{ROBOTS}/{said['id']}").json() == said


def test_a_robot_keeps_its_file_as_it_was_sent(browser: APIClient) -> None:
    browser.post(ROBOTS, made.ROBOT_FILE)

    assert Robot.objects.get().document == made.ROBOT_FILE


def test_a_faulty_robot_file_is_refused_field_by_field(browser: APIClient) -> None:
    table = {**made.ROBOT_FILE["robot"], "slug": "No Good", "joints": [], "wheels": 4}

    response = browser.post(ROBOTS, {"robot": table})

    assert response.status_code == 422
    assert set(response.json()["errors"]) == {"robot.slug", "robot.joints", "robot.wheels"}
    assert not Robot.objects.exists()


def test_a_slug_is_given_once_in_an_account(browser: APIClient) -> None:
    browser.post(ROBOTS, made.ROBOT_FILE)

    response = browser.post(ROBOTS, made.ROBOT_FILE)

    assert response.status_code == 409
    assert response.json()["type"].endswith("/robot-slug-taken")


def test_two_accounts_may_use_one_slug(browser: APIClient, eve: User) -> None:
    made.robot(eve.account)

    assert browser.post(ROBOTS, made.ROBOT_FILE).status_code == 201


def test_who_plans_for_several_accounts_names_one(browser: APIClient, lab: Account) -> None:
    unnamed = browser.post(ROBOTS, made.ROBOT_FILE)
    named = browser.post(ROBOTS, {**made.ROBOT_FILE, "account": lab.pk})

    assert unnamed.status_code == 422
    assert "several accounts" in unnamed.json()["errors"]["account"][0]
    assert named.json()["account"] == lab.pk


def test_an_account_where_one_only_operates_is_no_choice(oto: User, lab: Account) -> None:
    browser = factories.client(oto)

    unnamed = browser.post(ROBOTS, made.ROBOT_FILE)
    named = browser.post(ROBOTS, {**made.ROBOT_FILE, "account": lab.pk})

    assert unnamed.json()["account"] == oto.account.pk
    assert named.status_code == 403
    assert named.json()["type"].endswith("/role-forbidden")


def test_somebody_elses_account_is_not_there(browser: APIClient, eve: User) -> None:
    response = browser.post(ROBOTS, {**made.ROBOT_FILE, "account": eve.account.pk})

    assert response.status_code == 404


def test_a_key_makes_robots_for_its_own_account(ana: User, lab: Account) -> None:
    program = factories.key_client(factories.api_key(ana, account=lab))

    assert program.post(ROBOTS, made.ROBOT_FILE).json()["account"] == lab.pk


def test_robots_are_found_by_slug(browser: APIClient, ana: User) -> None:
    made.robot(ana.account)
    other = made.robot(ana.account, slug="other")

    found = browser.get(ROBOTS, {"slug": "other"}).json()["items"]

    assert [robot["id"] for robot in found] == [other.pk]
