from datetime import timedelta

import pytest

from hub.accounts import services
from hub.accounts.models import ApiKey
from hub.accounts.permissions import RoleForbidden
from hub.audit.models import Event
from hub.core.problems import Unprocessable
from tests import factories
from tests.factories import NOON

KEYS = "/api/v1/api-keys"
BODY = {"name": "agent", "scopes": ["key:read", "key:write"]}


def make(user, **body):
    return factories.client(user).post(KEYS, {**BODY, **body})


def test_a_key_is_shown_once_and_kept_as_a_hash(ana):
    made = make(ana).json()
    listed = factories.client(ana).get(KEYS).json()["items"]

    assert made["secret"].startswith("thk_")
    assert len(made["secret"]) >= 40
    assert listed == [made["key"]]
    assert made["secret"] not in str(ApiKey.objects.values())
    assert made["secret"].startswith(listed[0]["prefix"])


def test_a_key_is_made_for_the_org_that_its_owner_names(ana, lab):
    assert make(ana, account=lab.pk).json()["key"]["account"] == lab.pk


@pytest.mark.parametrize("who", ["mo", "oto"])
def test_only_an_owner_makes_or_ends_a_key_of_an_org(request, ana, lab, who):
    user = request.getfixturevalue(who)
    key = factories.api_key(ana, account=lab).key

    assert make(user, account=lab.pk).status_code == 403
    assert factories.client(user).delete(f"{KEYS}/{key.pk}").status_code == 403


def test_a_member_sees_the_keys_of_the_org_and_a_stranger_does_not(ana, lab, mo, eve):
    key = factories.api_key(ana, account=lab).key

    assert [item["id"] for item in factories.client(mo).get(KEYS).json()["items"]] == [key.pk]
    assert factories.client(eve).get(KEYS).json()["items"] == []
    assert factories.client(eve).delete(f"{KEYS}/{key.pk}").status_code == 404


@pytest.mark.parametrize("call", ["get", "post"])
def test_a_key_manages_no_keys(ana, call):
    response = getattr(factories.key_client(factories.api_key(ana)), call)(KEYS, BODY)

    assert response.status_code == 403
    assert response.json()["type"] == "/problems/persons-only"


def test_a_revoked_key_stops_at_once_and_may_be_revoked_again(ana):
    new = factories.api_key(ana)
    program, browser = factories.key_client(new), factories.client(ana)
    assert program.get("/api/v1/me").status_code == 200

    assert browser.delete(f"{KEYS}/{new.key.pk}").status_code == 204

    refused = program.get("/api/v1/me")
    assert (refused.status_code, refused.json()["type"]) == (401, "/problems/wrong-key")
    assert browser.delete(f"{KEYS}/{new.key.pk}").status_code == 204
    assert Event.objects.filter(action="key.revoked").count() == 1


def test_a_key_works_until_its_last_moment_and_not_after(ana):
    new = factories.api_key(ana)
    ends = NOON + timedelta(days=1)
    ApiKey.objects.update(expires_at=ends)

    assert ApiKey.objects.usable(at=ends - timedelta(seconds=1)).get() == new.key
    assert not ApiKey.objects.usable(at=ends).exists()


def test_a_key_that_would_be_over_already_is_not_made(ana):
    with pytest.raises(Unprocessable):
        services.create_api_key(
            account=ana.account,
            name="a",
            scopes=["key:read"],
            expires_at=NOON,
            by=factories.actor(ana),
            at=NOON,
        )


def test_an_account_has_keys_up_to_the_cap_and_not_one_more(ana, settings):
    settings.API_KEYS_PER_ACCOUNT = 2
    last = [make(ana).json()["key"]["id"] for _ in range(2)][-1]
    assert make(ana).status_code == 409

    factories.client(ana).delete(f"{KEYS}/{last}")

    assert make(ana).status_code == 201


def test_use_is_noted_but_not_on_every_request(ana, settings):
    program = factories.key_client(factories.api_key(ana))
    program.get("/api/v1/me")
    first = ApiKey.objects.get().last_used_at
    program.get("/api/v1/me")
    assert ApiKey.objects.get().last_used_at == first

    settings.KEY_USE_NOTED_EVERY = timedelta(0)
    program.get("/api/v1/me")

    assert ApiKey.objects.get().last_used_at > first


def test_the_audit_names_the_key_and_never_the_secret(ana):
    new = factories.api_key(ana)

    event = Event.objects.get(action="key.created")
    assert event.sentence == f"ana@lab.test made the API key {new.key.prefix}… (agent) for ana."
    assert event.account_id == ana.account.pk
    assert new.secret not in str(Event.objects.values())


@pytest.mark.parametrize(
    "act",
    [
        lambda ana, _: factories.api_key(ana),
        lambda ana, key: services.revoke_api_key(key=key, by=factories.actor(ana), at=NOON),
    ],
)
def test_without_its_audit_event_nothing_happens_to_a_key(ana, monkeypatch, act):
    new = factories.api_key(ana)
    monkeypatch.setattr(services.audit, "record", lambda *a, **k: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        act(ana, new.key)

    assert ApiKey.objects.get().revoked_at is None


def test_the_service_itself_refuses_who_is_no_owner(ana, lab, mo):
    with pytest.raises(RoleForbidden):
        services.create_api_key(
            account=lab, name="a", scopes=["key:read"], expires_at=None, by=factories.actor(mo), at=NOON
        )
