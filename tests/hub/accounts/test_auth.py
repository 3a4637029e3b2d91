from datetime import timedelta

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from hub.accounts import actors, auth, permissions
from hub.accounts.permissions import RecentSignInNeeded, signed_in_recently
from tests import factories
from tests.factories import NOON

ME, KEYS = "/api/v1/me", "/api/v1/api-keys"
BODY = {"name": "agent", "scopes": ["key:read"]}


def strict_browser(user):
    browser = APIClient(enforce_csrf_checks=True)
    browser.force_login(user)
    return browser


def test_a_session_without_the_csrf_token_changes_nothing(ana):
    response = strict_browser(ana).post(KEYS, BODY)

    assert response.status_code == 403
    assert response.json()["type"] == "/problems/csrf"


def test_a_session_with_the_csrf_token_may(ana):
    browser = strict_browser(ana)
    browser.cookies["csrftoken"] = "a" * 32

    assert browser.post(KEYS, BODY, HTTP_X_CSRFTOKEN="a" * 32).status_code == 201


def test_a_session_reads_without_the_token(ana):
    assert strict_browser(ana).get(ME).status_code == 200


def test_a_key_beside_a_session_counts_as_the_key(ana):
    both = factories.client(ana)
    both.credentials(HTTP_AUTHORIZATION=f"Bearer {factories.api_key(ana).secret}")

    assert both.get(ME).json()["kind"] == "key"
    assert both.post(KEYS, BODY).status_code == 403


@pytest.mark.parametrize(
    "header", ["Bearer thk_wrong", "Bearer", "bearer x", "Basic YTpi", "thk_x", "Bearer thk_\u00e9", ""]
)
def test_a_wrong_credential_is_401_and_never_falls_back_to_the_session(ana, header):
    browser = factories.client(ana)
    browser.credentials(HTTP_AUTHORIZATION=header)

    response = browser.get(ME)

    assert response.status_code == 401
    assert response["WWW-Authenticate"].startswith("Bearer")


def test_a_person_who_is_not_active_any_more_is_nobody(ana):
    browser = factories.client(ana)
    ana.is_active = False
    ana.save(update_fields=["is_active"])

    assert browser.get(ME).status_code == 401


def test_an_old_session_id_is_worth_nothing_after_signing_in(ana):
    browser = APIClient()
    browser.session.save()
    before = browser.session.session_key

    browser.force_login(ana)

    assert browser.session.session_key != before


def test_signing_in_is_remembered_with_its_moment(ana):
    browser = factories.client(ana)

    said = browser.get(ME).json()["signed_in_at"]

    assert timezone.now() - timedelta(minutes=1) < timezone.datetime.fromisoformat(said) <= timezone.now()


@pytest.mark.parametrize(("age", "young"), [(0, True), (11.99, True), (12, False), (500, False)])
def test_consent_needs_a_sign_in_younger_than_twelve_hours(ana, age, young):
    by = factories.actor(ana, signed_in_at=NOON - timedelta(hours=age))

    if young:
        signed_in_recently(by, at=NOON)
    else:
        with pytest.raises(RecentSignInNeeded) as refused:
            signed_in_recently(by, at=NOON)
        assert refused.value.body()["type"] == "/problems/recent-sign-in-required"


def test_a_session_that_does_not_say_when_it_began_is_not_recent(ana):
    with pytest.raises(RecentSignInNeeded):
        signed_in_recently(actors.person(ana), at=NOON)


def test_an_app_further_up_adds_its_own_way_which_counts_before_the_session(ana):
    box = actors.device("dev_1")

    def signed_by_box(request, *, at):
        return box if "Signature" in request.headers else None

    auth.register(signed_by_box)
    try:
        refused = factories.client(ana).get(ME, HTTP_SIGNATURE="x")
    finally:
        auth.AUTHENTICATORS.remove(signed_by_box)

    assert (refused.status_code, refused.json()["type"]) == (403, "/problems/not-for-devices")


WHO = ["S", "R", "W", "D", "SR", "SW", "SRD", "RW", "A"]


@pytest.mark.parametrize("who", WHO)
def test_each_kind_of_caller_passes_where_its_letter_stands(ana, who):
    read = actors.key(factories.api_key(ana, scopes=("key:read",)).key)
    write = actors.key(factories.api_key(ana, scopes=("key:write",)).key)
    callers = {"S": actors.person(ana), "R": read, "W": write, "D": actors.device("dev_1")}
    passed = set()

    for letter, by in callers.items():
        try:
            permissions.check_kind(by, who=who)
        except permissions.Forbidden:
            continue
        passed.add(letter)

    by_hand = {
        "S": "S",
        "R": "RW",
        "W": "W",
        "D": "D",
        "SR": "SRW",
        "SW": "SW",
        "SRD": "SRWD",
        "RW": "RW",
        "A": "SRWD",
    }
    assert passed == set(by_hand[who])
