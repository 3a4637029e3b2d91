"""The hub's own signing keys."""

import json
import stat
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client
from pytest_django import Settings

from devices import keys
from driver.wire import base64url, signatures
from tests.factories import NOON
from tests.races import at_once


def test_the_first_key_is_made_for_the_hub_s_eyes_only(settings: Settings) -> None:
    keys.signing_key(at=NOON)

    assert stat.S_IMODE(Path(settings.HUB_KEY_FILE).stat().st_mode) == 0o600
    assert [path.name for path in Path(settings.HUB_KEY_FILE).parent.iterdir()] == ["hub.key"]


def test_a_key_is_made_once(settings: Settings) -> None:
    first = keys.signing_key(at=NOON)

    assert keys.signing_key(at=NOON + timedelta(days=1)) == first


@pytest.mark.django_db(transaction=True)
def test_processes_that_start_together_use_one_key() -> None:
    found = at_once(*[lambda: keys.signing_key(at=NOON).kid] * 8)

    assert len(set(found)) == 1


def test_keys_that_others_may_read_are_not_used(settings: Settings) -> None:
    keys.signing_key(at=NOON)
    Path(settings.HUB_KEY_FILE).chmod(0o640)

    with pytest.raises(ImproperlyConfigured, match="chmod 600"):
        keys.signing_key(at=NOON)


@pytest.mark.parametrize("text", ["", "{}", '{"keys": [{"secret": "AA"}]}', '{"keys": 1}', "[]"])
def test_a_broken_key_file_is_said_and_never_replaced(settings: Settings, text: str) -> None:
    path = Path(settings.HUB_KEY_FILE)
    path.write_text(text)
    path.chmod(0o600)

    with pytest.raises(ImproperlyConfigured):
        keys.signing_key(at=NOON)
    assert path.read_text() == text


def test_the_newest_key_signs_and_old_ones_stay_published() -> None:
    first = keys.signing_key(at=NOON)

    second = keys.rotate(at=NOON + timedelta(days=30))

    assert keys.signing_key(at=NOON + timedelta(days=29)).kid == first.kid
    assert keys.signing_key(at=NOON + timedelta(days=30)).kid == second.kid
    assert [key["kid"] for key in keys.published(at=NOON)] == [second.kid, first.kid]
    assert [key["valid_until"] for key in keys.published(at=NOON)] == [None, "2026-02-04T12:00:00.000Z"]


def test_a_hub_whose_clock_went_back_still_signs() -> None:
    first = keys.signing_key(at=NOON)

    assert keys.signing_key(at=NOON - timedelta(days=9)) == first


def test_what_the_hub_says_of_itself(settings: Settings) -> None:
    settings.PUBLIC_ORIGIN = "https://hub.example"
    response = Client().get("/.well-known/trial-hub.json")

    said = response.json()
    assert response["Content-Type"] == "application/json"
    assert said["api"] == "https://hub.example/api/v1"
    assert said["storage_hosts"] == ["127.0.0.1:9"]
    (key,) = said["keys"]
    assert key["kid"] == signatures.kid(base64url.decode(key["public_key"]))
    assert "secret" not in json.dumps(said)
