"""Somebody else's robot: a model, two policies, a robot file and two sidecars, and no code that knows it."""

import io
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from driver.bodies.choose import simulated_options
from driver.bodies.mujoco import MujocoBody
from driver.contract.document import Contract, check_contract
from driver.contract.onnx_file import pack, read_contract
from driver.evaluate import Course, SeedResult, run_seed
from driver.policy.commands import source_for
from driver.policy.ending import Ending
from driver.policy.inference import Model
from driver.policy.order import AbortRule, Limits, Stage, StageOrder, Teleop
from driver.policy.runner import Parts, run_stage
from driver.wire import csvlog
from driver.wire.robot import robot_from_document
from tests import cases

HERE = Path(__file__).parent
ROBOT = robot_from_document(tomllib.loads((HERE / "robot.toml").read_text()))
BOX = tomllib.loads((HERE / "box.toml").read_text())
POLICIES = ["mjlab", "lab"]


def body() -> str:
    """The box config's own words, with the model where the cases are."""
    words: str = BOX["stages"]["default"]["command"][-1]
    return words.replace("g1_29dof.xml", str(cases.path("g1/g1_29dof.xml")))


@contextmanager
def policy(name: str, folder: Path) -> Iterator[tuple[Model, Contract]]:
    if name == "mjlab":
        onnx = folder / "packed.onnx"
        pack(cases.path("onnx/unitree_rl_mjlab_velocity") / "policy.onnx", onnx)
    else:
        onnx = cases.path("onnx/unitree_rl_lab_g1_velocity.onnx")
    sidecar = tomllib.loads((HERE / f"{name}.contract.toml").read_text())
    contract = check_contract(read_contract(onnx, sidecar=sidecar, robot=ROBOT.slug, joints=ROBOT.joints))
    with Model(onnx, contract) as model:
        yield model, contract


def trial(name: str, folder: Path) -> SeedResult:
    with policy(name, folder) as (model, contract):
        course = Course(
            robot=ROBOT,
            body=simulated_options(body()),
            floor_s=4.0,
            teleop=((1.0, 0.0, 0.0, 0.0), (4.0, 0.5, 0.0, 0.0)),
        )
        return run_seed(model, contract, course, 1)


@pytest.mark.parametrize("name", POLICIES)
def test_it_hangs_stands_and_walks(name: str, tmp_path: Path):
    said = trial(name, tmp_path).summary

    assert {stage["name"]: stage["status"] for stage in said["stages"]} == {
        "hang": "done",
        "floor": "done",
        "teleop": "done",
    }
    assert said["falls"] == 0
    assert said["tilt_mean_deg"] < 2.5
    assert said["asym_max_deg"] < 10.0


class Log(io.BytesIO):
    def open(self, columns: tuple[str, ...]) -> csvlog.Writer:
        return csvlog.Writer(self, columns)


def walked(name: str, folder: Path) -> tuple[Ending, MujocoBody, csvlog.Log]:
    limits = {key: tuple(value) if isinstance(value, list) else value for key, value in BOX["limits"].items()}
    steps = tuple(tuple(step) for step in BOX["teleop"]["scripts"]["walk"]["steps"])
    with policy(name, folder) as (model, contract):
        order = StageOrder(
            stage=Stage(name="teleop", free_standing=True),
            contract=contract,
            onnx=Path(),
            log=Path(),
            limits=Limits(**limits),
            abort_rules=(AbortRule(metric="tilt_deg", op=">", value=45.0),),
            teleop=Teleop(source="script:walk", steps=steps),
            simulated=True,
        )
        robot, log = MujocoBody(simulated_options(body()), seed=1), Log()
        parts = Parts(body=robot, policy=model, source=source_for(order), open_log=log.open)
        ending = run_stage(order, parts)
    return ending, robot, csvlog.read(log.getvalue())


@pytest.mark.parametrize("name", POLICIES)
def test_asked_to_walk_half_a_metre_a_second_it_goes_some_metres(name: str, tmp_path: Path):
    ending, robot, log = walked(name, tmp_path)

    assert ending.stopped_by == "completed"
    assert robot.data.qpos[0] > 2.0
    assert log.rows == 400


def test_both_policies_log_the_same_joints_by_name_whatever_their_order(tmp_path: Path):
    _, _, natural = walked("mjlab", tmp_path)
    _, _, interleaved = walked("lab", tmp_path)

    assert natural.columns != interleaved.columns
    assert set(natural.columns) == set(interleaved.columns)
    knees = [log.array("q:left_knee_joint").mean() for log in (natural, interleaved)]
    assert all(0.1 < knee < 0.9 for knee in knees)
