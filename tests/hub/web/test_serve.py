"""`make hub`: one hub on one folder, stopped and started again, with nothing lost."""

import os
import signal
import subprocess
import sys
import tomllib
from contextlib import contextmanager

import pytest

from hub.web.demo.cast import DEMO
from hub.web.demo.founder import Founder
from hub.web.demo.processes import LINK, free_port

UP = "The hub is at"

pytestmark = pytest.mark.xdist_group("serve")  # told once, not once a worker


@contextmanager
def serving(folder, origin):
    """`manage.py serve` with the embedded defaults; gives the lines it printed once it was up."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}
    env = {**kept, "HUB_DATA": str(folder), "PUBLIC_ORIGIN": origin}
    command = [sys.executable, "-u", "-m", "django", "serve", "--settings", "hub.settings"]
    with subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate()


def read_until(process, words):
    lines = []
    for line in process.stdout:
        lines.append(line)
        if words in line:
            return "".join(lines)
    return pytest.fail("it ended:\n" + "".join(lines))


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What a hub says at its first start, what a second beside it says, and what is there after a restart."""
    folder, origin = tmp_path_factory.mktemp("hub"), f"http://127.0.0.1:{free_port()}"
    told = {}
    with serving(folder, origin) as first:
        link = LINK.search(read_until(first, "/welcome/"))[0]
        with serving(folder, f"http://127.0.0.1:{free_port()}") as second:
            told["second"] = second.stdout.read()
        told["second exit"] = second.returncode
        with Founder(origin) as ana:
            ana.arrive(link, name="Ana", email="ana@example.org", password="walks-on-rubber")
            ana.post("/robots", tomllib.loads((DEMO / "stilt.toml").read_text()))
    told["exit"] = first.returncode
    with serving(folder, origin) as again:
        told["again"] = read_until(again, UP)
        with Founder(origin) as ana:
            ana.sign_in(email="ana@example.org", password="walks-on-rubber")
            told["robots"] = ana.get("/robots")["items"]
    return told


def test_a_second_hub_on_the_same_folder_is_refused_in_words(told):
    assert told["second exit"] == 1
    assert "Another hub runs on" in told["second"]
    assert "Traceback" not in told["second"]


def test_stopping_it_is_no_failure(told):
    assert told["exit"] == 0


def test_what_was_there_is_there_after_a_restart(told):
    assert [robot["slug"] for robot in told["robots"]] == ["stilt"]


def test_once_somebody_has_signed_in_no_link_is_printed(told):
    assert "/welcome/" not in told["again"]
