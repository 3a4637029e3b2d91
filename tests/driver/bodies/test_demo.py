import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.bodies.choose import STILT
from driver.bodies.demo import episode, train
from driver.bodies.demo.weights import COMMON, JOINTS, LEFT, MIRROR, RIGHT, SIGN, WIDTH, count, weights
from driver.contract.document import check_contract, contract_name
from driver.contract.onnx_file import read_contract
from driver.policy.inference import Model
from driver.wire.robot import robot_from_document

DEMO = STILT.parent
SIDECAR = tomllib.loads((DEMO / "contract.toml").read_text())
ROBOT = robot_from_document(tomllib.loads((DEMO / "stilt.toml").read_text()))
CHECKPOINTS = sorted((DEMO / "checkpoints").glob("*.onnx"))


def test_all_checkpoints_have_the_same_contract():
    names = {
        contract_name(read_contract(path, sidecar=SIDECAR, robot=ROBOT.slug, joints=ROBOT.joints))
        for path in CHECKPOINTS
    }

    assert len(CHECKPOINTS) == 5
    assert len(names) == 1


def test_rolls_mirror_with_a_change_of_sign_and_nothing_else_does():
    assert {pair.name: pair.mirror for pair in ROBOT.pairs} == {
        "hip_roll": -1,
        "hip_pitch": 1,
        "knee": 1,
        "ankle_pitch": 1,
        "ankle_roll": -1,
        "shoulder_pitch": 1,
    }


# Training.


def reflected(observation: np.ndarray) -> np.ndarray:
    """The same moment seen in a mirror."""
    mirrored = observation.copy()
    mirrored[COMMON] *= MIRROR
    for start in (9, 21, 33):
        left, right = observation[start + LEFT], observation[start + RIGHT]
        mirrored[start + LEFT], mirrored[start + RIGHT] = SIGN * right, SIGN * left
    return mirrored


@given(st.integers(0, 2**32 - 1))
def test_tied_weights_do_in_the_mirror_what_they_do_outside_it(seed: int):
    rng = np.random.default_rng(seed)
    policy = weights(rng.standard_normal(count(tied=True)), tied=True)
    observation = rng.standard_normal(WIDTH)

    action, mirrored = policy.action(observation), policy.action(reflected(observation))

    assert mirrored[LEFT] == pytest.approx(SIGN * action[RIGHT])
    assert mirrored[RIGHT] == pytest.approx(SIGN * action[LEFT])


def test_a_joint_sees_no_other_joint():
    free = weights(np.ones(count(tied=False)), tied=False)

    assert (free.matrix != 0).sum(axis=1).tolist() == [16] * len(JOINTS)


def test_an_episode_is_the_same_for_the_same_seed():
    policy = weights(np.zeros(count(tied=True)), tied=True)
    options = train.Options(model=STILT, noise=1, spread=1)

    rewards = [episode.reward_of(policy, options=options, seed=seed) for seed in (5, 5, 6)]

    assert rewards[0] == rewards[1] != rewards[2]


def test_two_steps_of_training_leave_a_checkpoint_that_the_driver_can_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(train, "PAIRS", 2)
    monkeypatch.setattr(episode, "TICKS", 60)

    train.main(["--out", str(tmp_path), "--run", "short", "--tied", "--steps", "2"])

    path = tmp_path / "short_step_2.onnx"
    contract = check_contract(read_contract(path, sidecar=SIDECAR, robot=ROBOT.slug, joints=ROBOT.joints))
    shipped = read_contract(CHECKPOINTS[0], sidecar=SIDECAR)
    assert contract_name(read_contract(path, sidecar=SIDECAR)) == contract_name(shipped)
    with Model(path, contract) as model:
        model.warm_up()
    assert capsys.readouterr().out.count("reward") == 2


def test_the_shipped_model_says_what_the_same_weights_say_in_numpy(tmp_path: Path):
    from driver.bodies.demo.weights import save

    policy = weights(np.random.default_rng(1).standard_normal(count(tied=True)), tied=True)
    save(policy, tmp_path / "mine_step_1.onnx", run="mine")
    contract = check_contract(read_contract(tmp_path / "mine_step_1.onnx", sidecar=SIDECAR))
    observation = np.random.default_rng(2).standard_normal(WIDTH).astype(np.float32)

    with Model(tmp_path / "mine_step_1.onnx", contract) as model:
        assert model.action({"obs": observation}) == pytest.approx(policy.action(observation), abs=1e-5)
