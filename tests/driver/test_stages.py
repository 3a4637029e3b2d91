"""A stage's command as a process: stopped in steps, with all that it started, its output never in the way."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from driver import stages
from driver.output import KEPT
from driver.stages import StageProcess, Waits
from tests.driver.rig.box import wait_for

SHORT = Waits(interrupt_s=0.2, terminate_s=0.2, kill_s=5)


def python(tmp_path: Path, script: str, *, waits: Waits = SHORT) -> StageProcess:
    return StageProcess(
        [sys.executable, "-S", "-u", "-c", script],
        approval_id=f"apr_{tmp_path.name}",
        environment={"PATH": os.environ["PATH"]},
        folder=tmp_path,
        waits=waits,
    )


def ended(process: StageProcess) -> stages.Ended:
    wait_for(lambda: process.status() is not None)
    return process.stop()


def said(process: StageProcess, word: bytes) -> None:
    wait_for(lambda: word in process.output.tail(wait_s=0))


def test_a_command_that_ends_by_itself_ends_clean(tmp_path: Path) -> None:
    done = ended(python(tmp_path, "print('done')"))

    assert done.was_clean
    assert done.output == b"done\n"


def test_stopping_twice_is_stopping_once(tmp_path: Path) -> None:
    process = python(tmp_path, "import time; time.sleep(60)")

    assert process.stop() is process.stop()


def test_a_command_is_asked_by_sigint_first(tmp_path: Path) -> None:
    hears = "signal.signal(signal.SIGINT, lambda *_: sys.exit(0))"
    script = f"import signal, sys, time; {hears}; print('up'); time.sleep(60)"
    process = python(tmp_path, script, waits=Waits())
    said(process, b"up")

    assert process.stop().was_clean


def test_a_command_that_hears_nothing_is_killed(tmp_path: Path) -> None:
    deaf = (
        "import signal, time\nfor s in (2, 15): signal.signal(s, signal.SIG_IGN)\nprint('up'); time.sleep(60)"
    )
    process = python(tmp_path, deaf)
    said(process, b"up")

    done = process.stop()

    assert done.was_killed
    assert done.code == -signal.SIGKILL
    assert not done.was_clean


def test_a_child_that_left_the_session_is_ended_too(tmp_path: Path) -> None:
    child = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
    script = (
        "import subprocess, sys\n"
        f"p = subprocess.Popen([sys.executable, '-S', '-c', {child!r}], start_new_session=True)\n"
        "print(p.pid)"
    )

    done = ended(python(tmp_path, script))

    assert done.leftovers == 1
    assert not psutil.pid_exists(int(done.output))
    assert "leaving 1 processes behind" in done.in_words()


def test_output_without_end_keeps_its_end_only(tmp_path: Path) -> None:
    script = "import sys\nfor _ in range(300): sys.stdout.buffer.write(b'\\xff' * 10000)\nprint('last')"

    process = python(tmp_path, script)
    done = ended(process)

    assert len(done.output) == KEPT
    assert done.output.endswith(b"last\n")
    assert process.output.total == 3_000_005


def test_a_command_that_cannot_start_says_so(tmp_path: Path) -> None:
    process = StageProcess(
        ["no-such-program"], approval_id="apr_x", environment={"PATH": os.environ["PATH"]}, folder=tmp_path
    )

    done = ended(process)

    assert done.code == 127
    assert b"no-such-program: No such file" in done.output


def test_nothing_to_read_and_no_terminal(tmp_path: Path) -> None:
    done = ended(python(tmp_path, "import sys; print(repr(sys.stdin.read()), sys.stdin.isatty())"))

    assert done.output == b"'' False\n"


def test_an_exit_code_and_a_signal_are_told_in_words(tmp_path: Path) -> None:
    assert ended(python(tmp_path, "import sys; sys.exit(3)")).in_words() == "it ended with 3"
    assert ended(python(tmp_path, "import os; os.abort()")).in_words() == "it was ended by SIGABRT"


@pytest.mark.parametrize("way", ["death", "pipe"])
def test_the_command_is_gone_within_100_ms_of_the_daemon(way: str) -> None:
    """Each way alone. The best of three, for the machine that tests has other work too."""
    assert min(_survived_s(way) for _ in range(3)) < 0.1


def _survived_s(way: str) -> float:
    """Start a daemon with one stage, kill the daemon, and give the time until the stage is gone."""
    heartbeat = "import os; os.read(int(os.environ['TRIAL_HEARTBEAT_FD']), 1)"
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    waits = {"death": "import time; time.sleep(60)", "pipe": f"{deaf}; {heartbeat}"}[way]
    child = f"print(__import__('os').getpid(), flush=True); {waits}"
    daemon = (
        "import os, sys, time\n"
        "from pathlib import Path\n"
        "from driver.stages import StageProcess\n"
        f"p = StageProcess([sys.executable, '-S', '-c', {child!r}], approval_id='apr_d', "
        "environment=dict(os.environ), folder=Path('.'))\n"
        "while not p.output.tail(wait_s=0).endswith(b'\\n'): time.sleep(0.01)\n"
        "sys.stdout.buffer.write(p.output.tail(wait_s=0)); sys.stdout.flush(); time.sleep(60)"
    )
    command, root = [sys.executable, "-c", daemon], Path(stages.__file__).parents[1]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        process.kill()
        killed = time.monotonic()
        wait_for(lambda: not _runs(pid))
        return time.monotonic() - killed


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_short_command_that_takes_too_long_does_not_count_as_clean(tmp_path: Path) -> None:
    done = stages.run_to_end(python(tmp_path, "import time; time.sleep(60)"), within_s=0.2)

    assert done.was_killed
