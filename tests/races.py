"""Several callers at one moment, each with a database connection of its own."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """What each call gave or raised, in the order of the calls. All start together."""
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no row locks, so a race there proves nothing")
    gate = threading.Barrier(len(calls), timeout=30)

    def run(call: Callable[[], Any]) -> Any:
        try:
            connection.ensure_connection()
            gate.wait()
            return call()
        except Exception as raised:  # noqa: BLE001 - the test looks at it
            return raised
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))
