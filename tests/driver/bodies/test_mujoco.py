import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driver.bodies.base import BodyError, Plan
from driver.bodies.choose import STILT
from driver.bodies.demo.weights import DAMPING, DEFAULT, JOINTS, STIFFNESS
from driver.bodies.mujoco import MujocoBody
from driver.bodies.options import Options

# A box on a leg that slides, with an arm. The actuators are in another order than the joints.
POST = """
<mujoco model="post">
  <option timestep="0.005" integrator="implicitfast"/>
  <worldbody>
    {floor}
    <body name="base" pos="0 0 0.5">
      <freejoint/>
      <geom name="trunk" type="box" size=".1 .1 .1" mass="4"/>
      <site name="imu" {imu}/>
      <body name="leg" pos="0 0 -.2">
        <joint name="lift" type="slide" axis="0 0 1" range="-.2 .2" limited="true"/>
        <geom name="foot" type="box" size=".2 .2 .1" mass="1"/>
        <body name="arm" pos=".4 0 .3">
          <joint name="swing" axis="0 1 0" armature=".05"/>
          <geom name="hand" type="sphere" size=".05" mass=".5"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    {swing}
    <position name="a_lift" joint="lift" kp="500" kv="20" forcerange="-200 200"/>
  </actuator>
  <sensor><gyro site="imu"/></sensor>
</mujoco>
"""
SWING = '<position name="a_swing" joint="swing" kp="20" kv="1" forcerange="-50 50"/>'
FLOOR = '<geom name="floor" type="plane" size="5 5 .1"/>'
PERIOD_S = 0.02


def model(folder: Path, *, floor: str = FLOOR, swing: str = SWING, imu: str = "") -> Path:
    path = folder / "post.xml"
    path.write_text(POST.format(floor=floor, swing=swing, imu=imu))
    return path


def keyed(folder: Path) -> Path:
    """With its arm raised."""
    path = model(folder)
    key = '<keyframe><key name="up" qpos="0 0 .8 1 0 0 0 .15 .3"/></keyframe></mujoco>'
    path.write_text(path.read_text().replace("</mujoco>", key))
    return path


def connected(
    path: Path,
    joints: Sequence[str] = ("lift", "swing"),
    *,
    standing: bool = False,
    seed: int = 1,
    **options: Any,
) -> MujocoBody:
    body = MujocoBody(Options(model=path, **options), seed=seed)
    body.connect(Plan(joints=tuple(joints), period_s=PERIOD_S, free_standing=standing))
    return body


def told(
    body: MujocoBody, targets: Sequence[float], ticks: int = 1, gains: Sequence[float] = (500.0, 20.0)
) -> None:
    stiffness, damping = np.array(gains), np.array(gains) / 20
    for _ in range(ticks):
        body.send(np.array(targets), stiffness, damping)
        body.sleep_until(body.now() + PERIOD_S)


def stilt(*, standing: bool = True, seed: int = 1, **options: Any) -> MujocoBody:
    return connected(STILT, JOINTS, standing=standing, seed=seed, **options)


def in_default_pose(body: MujocoBody, ticks: int = 50) -> MujocoBody:
    for _ in range(ticks):
        body.send(DEFAULT, STIFFNESS, DAMPING)
        body.sleep_until(body.now() + PERIOD_S)
    return body


# Joints by name.


def test_joints_are_found_by_name_whatever_the_order_of_model_and_actuators(tmp_path: Path):
    body = connected(model(tmp_path), ("swing", "lift"))

    told(body, [0.5, 0.1], ticks=100, gains=(20.0, 500.0))

    assert body.read().joint_pos == pytest.approx([0.5, 0.1], abs=0.05)


def test_joints_that_nobody_drives_keep_their_pose(tmp_path: Path):
    body = connected(keyed(tmp_path), ("lift",))

    told(body, [0.1], ticks=100, gains=(500.0,))

    assert body.data.joint("swing").qpos[0] == pytest.approx(0.3, abs=0.05)


def test_a_joint_that_the_model_lacks_is_refused_by_name(tmp_path: Path):
    with pytest.raises(BodyError, match="'left_knee'"):
        connected(model(tmp_path), ("lift", "left_knee"))


@pytest.mark.parametrize(
    "swing",
    [
        "",
        '<motor joint="swing"/>',
        '<position joint="swing" kp="20" gear="6"/>',
        SWING + SWING.replace("a_", "b_"),
    ],
)
def test_a_joint_without_one_plain_position_actuator_is_refused(tmp_path: Path, swing: str):
    with pytest.raises(BodyError, match="'swing'"):
        connected(model(tmp_path, swing=swing))


def test_limits_are_the_models_and_infinite_where_it_has_none(tmp_path: Path):
    limits = connected(model(tmp_path)).joint_limits()

    assert limits.tolist() == [[-0.2, 0.2], [-np.inf, np.inf]]


def test_a_period_that_is_no_multiple_of_the_models_step_is_refused(tmp_path: Path):
    body = MujocoBody(Options(model=model(tmp_path)))

    with pytest.raises(BodyError, match="12 ms"):
        body.connect(Plan(joints=("lift",), period_s=0.012, free_standing=False))


@pytest.mark.parametrize("text", ["", "<mujoco>", "hello"])
def test_a_model_that_cannot_be_loaded_is_refused_in_words(tmp_path: Path, text: str):
    path = tmp_path / "robot.xml"
    path.write_text(text)

    with pytest.raises(BodyError):
        connected(path)


def test_a_model_that_is_not_there_is_refused_in_words(tmp_path: Path):
    with pytest.raises(BodyError, match="there is no model"):
        connected(tmp_path / "robot.xml")


# Time.


def test_time_is_the_simulations_own_and_passes_only_when_slept(tmp_path: Path):
    body = connected(model(tmp_path))

    assert body.now() == 0.0
    body.sleep_until(0.1)
    assert body.now() == pytest.approx(0.1)
    body.sleep_until(0.05)
    assert body.now() == pytest.approx(0.1)


def test_in_realtime_the_simulation_does_not_run_ahead_of_the_world(tmp_path: Path):
    body = connected(model(tmp_path), realtime=True)
    began = time.monotonic()

    body.sleep_until(0.1)

    assert time.monotonic() - began >= 0.099


# Hanging and standing.


def test_a_robot_hangs_clear_of_the_floor_until_it_is_let_go():
    body = in_default_pose(stilt(standing=True))

    assert body.data.ncon == 0
    assert body.data.qpos[2] > 0.36


def test_let_go_it_stands_on_the_floor_and_not_in_it():
    body = in_default_pose(stilt(standing=True))

    body.let_go()

    assert all(contact.dist > -0.001 for contact in body.data.contact)
    assert body.data.qpos[2] < 0.36
    assert body.read().gravity == pytest.approx([0, 0, -1], abs=1e-6)


def test_what_only_hangs_is_never_let_go():
    body = in_default_pose(stilt(standing=False))

    body.let_go()
    in_default_pose(body, 50)

    assert body.data.qpos[2] > 0.36


def test_a_model_without_a_floor_gets_one(tmp_path: Path):
    body = connected(model(tmp_path, floor=""), standing=True)

    body.let_go()
    told(body, [0.0, 0.0], ticks=100)

    assert body.data.qpos[2] == pytest.approx(0.3, abs=0.1)


def test_parts_that_overlap_as_drawn_do_not_push_each_other_apart(tmp_path: Path):
    path = model(tmp_path)
    elbow = '<geom name="elbow" type="sphere" size=".05" pos="-.4 0 -.1" mass=".01"/>'  # amid the trunk
    path.write_text(path.read_text().replace('<geom name="hand"', f'{elbow}<geom name="hand"'))
    body = connected(path)

    told(body, [0.0, 0.0], ticks=50)

    assert body.data.ncon == 0
    assert body.read().joint_pos[1] == pytest.approx(0.0, abs=0.05)


def test_a_robot_can_hang_from_another_body_than_its_base(tmp_path: Path):
    body = connected(model(tmp_path), hang_from="leg", lift=0.5)

    told(body, [0.1, 0.0], ticks=100)

    assert body.data.body("leg").xpos[2] == pytest.approx(0.3 + 0.25, abs=0.03)
    with pytest.raises(BodyError, match="'torso'"):
        connected(model(tmp_path), hang_from="torso")


def test_a_keyframe_is_the_pose_at_the_start(tmp_path: Path):
    path = keyed(tmp_path)

    assert connected(path).read().joint_pos == pytest.approx([0.15, 0.3])
    with pytest.raises(BodyError, match="'down'"):
        connected(path, keyframe="down")


# What it feels.


def test_gravity_and_rates_are_those_of_the_base(tmp_path: Path):
    body = connected(model(tmp_path))
    body.data.qpos[3:7] = [np.cos(0.15), np.sin(0.15), 0, 0]  # rolled by 0.3 rad
    body.data.qvel[3:6] = [0.1, 0.2, 0.3]

    state = body.read()

    assert state.gravity == pytest.approx([0, -np.sin(0.3), -np.cos(0.3)])
    assert state.ang_vel == pytest.approx([0.1, 0.2, 0.3])


def test_an_imu_that_is_mounted_turned_feels_turned(tmp_path: Path):
    upside_down = connected(model(tmp_path, imu='quat="0 1 0 0"'))

    assert upside_down.read().gravity == pytest.approx([0, 0, 1], abs=1e-9)


def test_the_imus_site_can_be_named(tmp_path: Path):
    with pytest.raises(BodyError, match="'head'"):
        connected(model(tmp_path), imu="head")


def test_without_noise_a_body_measures_the_truth_and_with_noise_it_does_not():
    quiet, noisy = stilt(), stilt(noise=1)

    assert np.array_equal(quiet.read().joint_pos, quiet.read().joint_pos)
    assert not np.array_equal(noisy.read().joint_pos, noisy.read().joint_pos)
    assert np.linalg.norm(noisy.read().gravity) == pytest.approx(1.0)


def test_one_seed_is_one_run():
    same = [in_default_pose(stilt(seed=3, noise=1, spread=1)).read().joint_pos for _ in range(2)]
    other = in_default_pose(stilt(seed=4, noise=1, spread=1)).read().joint_pos

    assert np.array_equal(same[0], same[1])
    assert not np.array_equal(same[0], other)


def test_an_individual_is_the_same_one_in_every_run():
    def heft(seed: int, individual: int | None) -> float:
        body = MujocoBody(Options(model=STILT, spread=1, seed=individual), seed=seed)
        body.connect(Plan(joints=JOINTS, period_s=PERIOD_S, free_standing=False))
        return float(body.model.body_mass[1])

    assert heft(1, individual=7) == heft(2, individual=7)
    assert heft(1, individual=7) != heft(1, individual=8)
    assert heft(1, individual=None) != heft(2, individual=None)


def test_silence_is_an_age_that_grows(tmp_path: Path):
    body = connected(model(tmp_path), silent_after_s=0.1)
    told(body, [0.0, 0.0], ticks=10)

    assert body.read().age_s == pytest.approx(0.1)


# How it differs from its model.


def tick_of_first_move(body: MujocoBody) -> int:
    told(body, [0.0, 0.0], ticks=20)
    start = body.read().joint_pos[1]
    for tick in range(10):
        told(body, [0.0, 1.0])
        if abs(body.read().joint_pos[1] - start) > 0.01:
            return tick
    return -1


def test_latency_delays_what_the_motors_do_by_whole_ticks(tmp_path: Path):
    late = [tick_of_first_move(connected(model(tmp_path), latency_ticks=ticks)) for ticks in (0, 1, 3)]

    assert late == [0, 1, 3]


def test_power_scales_what_a_motor_gives(tmp_path: Path):
    full = connected(model(tmp_path))
    half = connected(model(tmp_path), power=0.5)
    for body in (full, half):
        told(body, [0.0, 0.0], ticks=1)
        told(body, [0.0, 100.0], gains=(500.0, 500.0))

    assert full.read().torque[1] == pytest.approx(50.0)
    assert half.read().torque[1] == pytest.approx(25.0)


def test_gains_are_the_policys_and_not_the_models(tmp_path: Path):
    soft, hard = connected(model(tmp_path)), connected(model(tmp_path))
    told(soft, [0.0, 0.5], ticks=5, gains=(500.0, 1.0))
    told(hard, [0.0, 0.5], ticks=5, gains=(500.0, 20.0))

    assert hard.read().joint_pos[1] > 2 * soft.read().joint_pos[1]


def slid(body: MujocoBody) -> float:
    body.let_go()
    body.data.qvel[0] = 1.0
    told(body, [0.0, 0.0], ticks=25)
    return float(body.data.qpos[0])


def test_a_slippery_floor_lets_it_slide(tmp_path: Path):
    rough, slippery = (
        slid(connected(model(tmp_path), standing=True, friction=friction)) for friction in (1.0, 0.05)
    )

    assert slippery > 2 * rough


def test_pushes_shove_only_what_stands_on_its_own():
    still, pushed = in_default_pose(stilt()), in_default_pose(stilt(pushes=20))
    hanging = in_default_pose(stilt(standing=False, pushes=20), 250)
    for body in (still, pushed):
        body.let_go()
        in_default_pose(body, 250)

    assert np.abs(hanging.data.qpos[:2]).max() < 0.01
    assert np.abs(pushed.data.qpos[:2] - still.data.qpos[:2]).max() > 0.05
