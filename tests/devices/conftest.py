from pathlib import Path

import pytest
from pytest_django import Settings

from hub.accounts.models import Account, User
from tests.devices import factories as made
from tests.devices.factories import Box


@pytest.fixture(autouse=True)
def own_hub_keys(settings: Settings, tmp_path: Path) -> None:
    """Each test's hub has keys of its own; URLs are only presigned here, and nobody opens them."""
    settings.HUB_KEY_FILE = tmp_path / "hub.key"
    settings.S3_ENDPOINT = settings.S3_PUBLIC_ENDPOINT = "http://127.0.0.1:9"
    settings.S3_ACCESS_KEY = settings.S3_SECRET_KEY = "tests"


@pytest.fixture
def box(lab: Account, ana: User) -> Box:
    """A box of ana's org that has enrolled."""
    return made.box(lab, ana)
