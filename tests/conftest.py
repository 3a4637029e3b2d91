import os

import pytest

from hub.accounts.models import Account, User
from tests import factories, services


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """Called before the test database is made: the moment to have a PostgreSQL."""
    if os.environ["DATABASE_URL"] == services.postgres_url():
        services.ensure("postgres")


@pytest.fixture(scope="session")
def object_store() -> dict[str, str]:
    """A real S3 with a bucket for this process; the hub's settings point to it from now on."""
    from django.conf import settings

    from hub.storage import s3

    if not settings.S3_ENDPOINT:
        facts = services.ensure("store")
        settings.S3_ENDPOINT = settings.S3_PUBLIC_ENDPOINT = facts["url"]
        settings.S3_ACCESS_KEY, settings.S3_SECRET_KEY = facts["access_key"], facts["secret_key"]
    settings.S3_BUCKET = f"hub-{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
    s3.ensure_bucket()
    return {
        "S3_ENDPOINT": settings.S3_ENDPOINT,
        "S3_BUCKET": settings.S3_BUCKET,
        "S3_ACCESS_KEY": settings.S3_ACCESS_KEY,
        "S3_SECRET_KEY": settings.S3_SECRET_KEY,
    }


@pytest.fixture(scope="session")
def redis_url() -> str:
    """A real Redis or Valkey."""
    return os.environ["HUB_TEST_REDIS_URL"] or str(services.ensure("valkey")["url"])


@pytest.fixture(scope="session")
def hub_environment(django_db_setup: None, object_store: dict[str, str]) -> dict[str, str]:
    """The environment of another process of the same hub: same database, bucket and data folder."""
    from django.conf import settings
    from django.db import connection

    url = os.environ["DATABASE_URL"].rpartition("/")[0]
    given = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {
        **given,
        **object_store,
        "DJANGO_SETTINGS_MODULE": "hub.settings",
        "DATABASE_URL": f"{url}/{connection.settings_dict['NAME']}",
        "HUB_DATA": str(settings.HUB_DATA),
        "PYTHONPATH": str(services.ROOT),
    }


@pytest.fixture
def ana(db: None) -> User:
    """A person; the owner of what a test is about."""
    return factories.person("ana")


@pytest.fixture
def lab(ana: User) -> Account:
    """An org that ana owns."""
    return factories.org("lab", owner=ana)


@pytest.fixture
def mo(lab: Account) -> User:
    """A member of ana's org."""
    return factories.member("mo", org=lab)


@pytest.fixture
def oto(lab: Account) -> User:
    """An operator of ana's org."""
    return factories.operator("oto", org=lab)


@pytest.fixture
def eve(db: None) -> User:
    """A stranger: signed in, and nothing to do with ana's org."""
    return factories.stranger("eve")
