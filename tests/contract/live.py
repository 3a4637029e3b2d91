"""A live hub on PostgreSQL and SeaweedFS, a founder in it, real drivers: all through their front doors."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from urllib.parse import urlsplit, urlunsplit

import psycopg

from hub.web.demo.founder import Founder
from hub.web.demo.processes import free_port, hub
from hub.web.demo.story import Story
from tests import services

POLLUTED = "latency_ticks=1&noise=1&power=0.35&friction=0.25"


def own_database() -> str:
    """A new, empty database beside the tests' own."""
    base = os.environ["DATABASE_URL"]
    if base == services.postgres_url():
        services.ensure("postgres")
    name = f"live_{token_hex(4)}"
    with psycopg.connect(_database(base, "postgres"), autocommit=True) as connection:
        connection.execute(f'create database "{name}"')
    return _database(base, name)


def _database(url: str, name: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


@contextmanager
def live_hub(folder: Path, **settings: str) -> Iterator[Story]:
    """The hub's own `serve`, with PostgreSQL and the tests' object store; gives a story not yet begun."""
    store = services.ensure("store")
    origin = f"http://127.0.0.1:{free_port()}"
    environment = {
        "DATABASE_URL": own_database(),
        "S3_ENDPOINT": store["url"],
        "S3_ACCESS_KEY": store["access_key"],
        "S3_SECRET_KEY": store["secret_key"],
        "S3_BUCKET": f"live-{token_hex(4)}",
        **settings,
    }
    serving = hub(folder=folder / "hub", origin=origin, services=environment)
    with serving as link, Founder(origin) as founder:
        founder.arrive(link, name="ana", email="ana@example.org", password="walks-on-rubber")
        yield Story(founder=founder, origin=origin, folder=folder, say=lambda line: None, seeds=2)
