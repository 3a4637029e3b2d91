"""Several at once, from one starting line."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection


def at_once(*acts: Callable[[], Any]) -> list[Any]:
    """Run each act in a thread and a database connection of its own; what came of each, in order."""
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no row locks, so a race there proves nothing")
    line = threading.Barrier(len(acts))
    came: list[Any] = [None] * len(acts)

    def run(place: int, act: Callable[[], Any]) -> None:
        try:
            connection.ensure_connection()
            line.wait(10)
            came[place] = act()
        except Exception as error:  # noqa: BLE001 - a refusal is what a race is about
            came[place] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=each) for each in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return came
