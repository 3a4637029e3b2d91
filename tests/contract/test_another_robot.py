"""Somebody else's robot and policies, from plan to bracket: only files say what they are, no code of ours."""

import subprocess
import sys
from pathlib import Path

import pytest

from hub.web.demo.cast import someone_elses
from tests import cases
from tests.contract.live import live_hub

G1 = Path(__file__).parents[1] / "driver" / "g1"
CODE = ("driver", "hub", "devices", "trials")

pytestmark = pytest.mark.xdist_group("another-robot")  # told once, not once a worker


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    folder = tmp_path_factory.mktemp("g1")
    packed = folder / "mjlab.onnx"
    shell = cases.path("onnx/unitree_rl_mjlab_velocity/policy.onnx")
    subprocess.run([sys.executable, "-m", "driver", "pack", str(shell), "-o", str(packed)], check=True)
    other = cases.path("onnx/unitree_rl_lab_g1_velocity.onnx")
    cast = someone_elses(
        robot=str(G1 / "robot.toml"),
        model=f"{cases.path('g1/g1_29dof.xml')}?hang_from=torso_link&lift=0.02",
        control=f"{packed},{G1 / 'mjlab.contract.toml'}",
        candidates=[f"{other},{G1 / 'lab.contract.toml'}"],
        body="noise=0.3",
        speed=0.3,
    )
    with live_hub(folder) as story:
        story.cast = cast
        told = story.founder.get(f"/trial-sessions/{story.tell()}")
        trials = [story.founder.get(f"/trials/{trial['id']}") for trial in told["trials"]]
    return told, trials


def test_both_policies_walk_through_every_stage(session):
    _, trials = session

    for trial in trials:
        assert [stage["status"] for stage in trial["stages"]] == ["done", "done", "done"], trial["position"]
        assert trial["log"]["summary"]["falls"] == 0


def test_the_bracket_is_computed_from_the_two_control_runs(session):
    told, _ = session

    assert told["bracket"]["holds"] is True
    assert all(row["first"] is not None for row in told["bracket"]["metrics"] if row["decides"])


def test_the_hub_derives_the_same_numbers_for_a_robot_it_has_never_seen(session):
    _, trials = session

    assert {trial["log"]["hub_check"]["state"] for trial in trials} == {"agrees"}


def test_no_code_of_ours_knows_the_robot():
    root = Path(__file__).parents[2]
    sources = [path.read_text() for folder in CODE for path in (root / folder).rglob("*.py")]

    assert sources
    assert not [text for text in sources if "unitree" in text.lower() or "g1_" in text.lower()]
