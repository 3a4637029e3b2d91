"""Coming in: sign-in, sign-out, and the one-time link of the first owner."""

import pytest
from django.test import Client

from hub.accounts import services
from hub.accounts.actors import SYSTEM
from hub.accounts.models import User
from tests import factories
from tests.factories import NOON

PASSWORD = "a long and plain phrase"


@pytest.fixture
def ana(db) -> User:
    return factories.person("ana", password=PASSWORD)


def sign_in(browser: Client, *, email="ana@lab.test", password=PASSWORD, path="/sign-in"):
    return browser.post(path, {"username": email, "password": password})


def owner_link() -> str:
    from django.utils import timezone

    return f"/welcome/{services.make_owner_link(by=SYSTEM, at=timezone.now())}"


def arrive(browser: Client, link: str, **changed: str):
    said = {"name": "Ana", "email": "ana@lab.test", "password": PASSWORD, "again": PASSWORD}
    return browser.post(link, {**said, **changed})


def test_a_person_signs_in_and_sees_the_sessions(ana, client):
    answer = sign_in(client)

    assert answer.headers["Location"] == "/"
    assert "No session yet" in client.get("/").content.decode()


def test_the_address_may_be_spelled_in_capitals(ana, client):
    assert sign_in(client, email="Ana@LAB.test").status_code == 302


@pytest.mark.parametrize("wrong", [{"password": "guess"}, {"email": "nobody@lab.test"}])
def test_a_wrong_password_and_an_unknown_address_get_the_same_words(ana, client, wrong):
    shown = sign_in(client, **wrong).content.decode()

    assert "do not belong together" in shown


def test_after_signing_in_one_is_sent_back_to_the_page_one_asked_for(ana, client):
    asked = client.get("/trials/trl_x").headers["Location"]

    assert sign_in(client, path=asked).headers["Location"] == "/trials/trl_x"


def test_signing_in_sends_nobody_to_another_site(ana, client):
    answer = sign_in(client, path="/sign-in?next=https://elsewhere.example/")

    assert answer.headers["Location"] == "/"


def test_a_link_alone_signs_nobody_out(ana, client):
    sign_in(client)

    assert client.get("/sign-out").status_code == 405
    assert client.get("/api/v1/me").status_code == 200
    client.post("/sign-out")
    assert client.get("/api/v1/me").status_code == 401


def test_signing_in_again_makes_the_sign_in_recent(ana, client):
    sign_in(client)
    session = client.session
    session["signed_in_at"] = NOON.timestamp()
    session.save()

    sign_in(client)

    assert client.session["signed_in_at"] > NOON.timestamp()


def test_the_first_owner_names_themselves_and_is_signed_in(db, client):
    answer = arrive(client, owner_link())

    assert answer.headers["Location"] == "/"
    me = client.get("/api/v1/me").json()
    assert me["name"] == "ana@lab.test"
    assert me["accounts"][0]["role"] == "owner"


def test_a_link_works_once(db, client):
    link = owner_link()
    arrive(client, link)

    again = Client().get(link)

    assert again.status_code == 404
    assert "used, expired or unknown" in again.content.decode()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"again": "another phrase altogether"}, "The two passwords differ."),
        ({"password": "short", "again": "short"}, "too short"),
        ({"email": "nowhere"}, "valid email"),
    ],
)
def test_what_does_not_fit_is_said_beside_the_field_and_nothing_is_lost(db, client, changed, words):
    link = owner_link()

    answer = arrive(client, link, **changed)

    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert 'value="Ana"' in answer.content.decode()
    assert arrive(client, link).status_code == 302
