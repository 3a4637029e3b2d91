"""The stage command as the daemon starts it: a process of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from onnx import helper, numpy_helper

from driver.contract.onnx_file import read_contract
from driver.policy.guard import GONE
from driver.wire import csvlog
from tests.driver.models import METADATA, SIDECAR, saved, still

ROOT = Path(__file__).resolve().parents[3]
REAL = "python:tests.driver.policy.puppet:on_the_real_clock"
STUCK = "python:tests.driver.policy.puppet:stuck"


class Stage:
    """One stage child, with the daemon's ends of its pipes."""

    def __init__(self, folder: Path, body: str, **changes: Any) -> None:
        self.log = folder / "01-floor.csv"
        onnx = saved(still(metadata=METADATA | {"default_joint_pos": "-0.300,0.600,-0.300,0.600"}), folder)
        self.order: dict[str, Any] = {
            "stage": {"name": "floor", "duration_s": 60.0, "free_standing": True, "values": {}},
            "sheet": {"kd_scale": 1, "power_scale": 1, "gain_profile": "policy", "abort_rules": []},
            "contract": read_contract(onnx, sidecar=SIDECAR),
            "onnx": str(onnx),
            "log": str(self.log),
            "limits": {"ramp_s": 0.04},
            "gains": None,
            "teleop": None,
            "simulated": False,
            "seed": None,
            "t0_s": 0.0,
        } | changes
        ear, self.heartbeat = os.pipe()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "driver", "stage", "--body", body],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "TRIAL_HEARTBEAT_FD": str(ear)},
            pass_fds=(ear,),
        )
        os.close(ear)
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(self.order).encode())
        self.process.stdin.close()
        self.process.stdin = None

    def has_rows(self) -> bool:
        return self.log.exists() and self.log.read_bytes().count(b"\n") > 2

    def said(self) -> dict[str, Any]:
        """What its last line said, once it has ended."""
        out, _ = self.process.communicate(timeout=30)
        last = out.decode().splitlines()[-1]
        assert last.startswith("TRIAL-STOP ")
        said: dict[str, Any] = json.loads(last.removeprefix("TRIAL-STOP "))
        return said

    def end(self) -> None:
        os.close(self.heartbeat)
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Stage]]:
    started: list[Stage] = []

    def start_one(body: str = REAL, **changes: Any) -> Stage:
        started.append(Stage(tmp_path, body, **changes))
        return started[-1]

    yield start_one
    for stage in started:
        stage.end()


def wait_until(fulfilled: Callable[[], bool], within_s: float = 30.0) -> None:
    until = time.monotonic() + within_s
    while not fulfilled():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.005)


def test_a_stage_runs_to_its_end_and_says_so(start: Callable[..., Stage]):
    stage = start(stage={"name": "floor", "duration_s": 0.3, "free_standing": True, "values": {}})

    said = stage.said()

    assert said["stopped_by"] == "completed"
    assert said["simulated_clock"] is False
    assert stage.process.returncode == 0
    log = csvlog.read(stage.log)
    assert log.array("t")[-1] < 0.3
    assert log.rows >= 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_the_operators_stop(start: Callable[..., Stage], number: signal.Signals):
    stage = start()
    wait_until(stage.has_rows)

    stage.process.send_signal(number)

    assert (stage.said()["stopped_by"], stage.process.returncode) == ("operator", 0)


def test_the_stage_ends_with_the_daemon(start: Callable[..., Stage]):
    stage = start()
    wait_until(stage.has_rows)

    closed = time.monotonic()
    os.close(stage.heartbeat)
    stage.process.wait(timeout=10)
    took = time.monotonic() - closed
    stage.heartbeat = os.open(os.devnull, os.O_RDONLY)

    # It has 80 ms by its own clock; the rest is for a machine that has other things to do.
    assert took < 1.0
    assert csvlog.read(stage.log).rows > 1


def test_a_stage_that_is_stuck_ends_with_the_daemon_too(start: Callable[..., Stage], tmp_path: Path):
    stage = start(f"{STUCK}?{tmp_path / 'stuck'}")
    wait_until((tmp_path / "stuck").exists)

    os.close(stage.heartbeat)
    stage.process.wait(timeout=10)
    stage.heartbeat = os.open(os.devnull, os.O_RDONLY)

    assert stage.process.returncode == GONE


def test_the_kernel_tells_a_stage_that_its_parent_was_killed(start: Callable[..., Stage], tmp_path: Path):
    """Without any heartbeat: the parent starts the stage, and is killed."""
    stage = start()
    wait_until(stage.has_rows)
    stage.process.kill()
    stage.process.wait()
    stage.log.unlink()
    order = tmp_path / "order.json"
    order.write_text(json.dumps(stage.order))
    words = [sys.executable, "-m", "driver", "stage", "--body", REAL]
    parent = subprocess.Popen(
        [sys.executable, "-c", f"import subprocess; subprocess.run({words!r}, stdin=open({str(order)!r}))"],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(stage.has_rows)
    children = psutil.Process(parent.pid).children()

    parent.kill()
    parent.wait()

    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []


def test_a_model_that_asks_for_gigabytes_fails_and_not_the_machine(
    start: Callable[..., Stage], tmp_path: Path
):
    model = still(metadata=METADATA)
    model.graph.initializer.append(numpy_helper.from_array(np.array([2**33]), "size"))
    model.graph.node.insert(0, helper.make_node("ConstantOfShape", ["size"], ["huge"]))
    model.graph.node.insert(1, helper.make_node("ReduceSum", ["huge"], ["nothing"], keepdims=0))
    model.graph.node.insert(2, helper.make_node("Add", ["obs", "nothing"], ["shifted"]))
    model.graph.node[3].input[0] = "shifted"
    (tmp_path / "huge").mkdir()

    said = start(onnx=str(saved(model, tmp_path / "huge"))).said()

    assert said["stopped_by"] == "command_failed"
    assert "the policy" in said["reason"]


def test_an_order_that_is_not_followed_is_refused_before_the_body_is_touched(start: Callable[..., Stage]):
    stage = start(limits={"tilt_degrees": 60})

    said = stage.said()

    assert said["stopped_by"] == "command_failed"
    assert "tilt_degrees" in said["reason"]
    assert stage.process.returncode == 1
    assert not stage.log.exists()


def test_a_box_that_says_it_is_simulated_moves_no_real_body(start: Callable[..., Stage]):
    said = start(simulated=True).said()

    assert said["stopped_by"] == "command_failed"
    assert "simulated" in said["reason"]


def test_a_body_that_does_not_exist_is_refused_in_words(start: Callable[..., Stage]):
    assert "nobody" in start("python:nobody:knows").said()["reason"]


def test_a_log_that_cannot_be_written_fails_the_stage(start: Callable[..., Stage], tmp_path: Path):
    stage = start(log=str(tmp_path / "nowhere" / "01-floor.csv"))

    said = stage.said()

    assert said["stopped_by"] == "command_failed"
    assert "log cannot be written" in said["reason"]
    assert stage.process.returncode == 1
