from typing import Any

import pytest

from driver.wire import robot
from driver.wire.robot import BadRobot

LEGS = ["left_hip_roll_joint", "left_knee_joint", "right_hip_roll_joint", "right_knee_joint", "waist_joint"]


def document(**changes: Any) -> dict[str, Any]:
    return {"robot": {"slug": "biped", "name": "A biped", "joints": LEGS, **changes}}


def names(joints: list[str]) -> list[tuple[str, str, str]]:
    return [(pair.name, pair.left, pair.right) for pair in robot.pairs_of(joints)]


@pytest.mark.parametrize(
    ("joints", "pairs"),
    [
        (["left_knee_joint", "right_knee_joint"], [("knee", "left_knee_joint", "right_knee_joint")]),
        (["knee_left", "knee_right"], [("knee", "knee_left", "knee_right")]),
        (["LeftKnee", "RightKnee"], [("Knee", "LeftKnee", "RightKnee")]),
        (["leftKnee", "rightKnee"], [("Knee", "leftKnee", "rightKnee")]),
        (["l_knee", "r_knee"], [("knee", "l_knee", "r_knee")]),
        (["knee_L", "knee_R"], [("knee", "knee_L", "knee_R")]),
        (["LKneePitch", "RKneePitch", "HeadYaw"], [("KneePitch", "LKneePitch", "RKneePitch")]),
        (
            ["FL_thigh", "FR_thigh", "RL_thigh", "RR_thigh"],
            [("F_thigh", "FL_thigh", "FR_thigh"), ("R_thigh", "RL_thigh", "RR_thigh")],
        ),
        (
            ["LF_HAA", "RF_HAA", "LH_HAA", "RH_HAA"],
            [("F_HAA", "LF_HAA", "RF_HAA"), ("H_HAA", "LH_HAA", "RH_HAA")],
        ),
        (["l", "r"], [("l", "l", "r")]),
        (["left_knee_joint", "waist_joint"], []),
        (["shoulder_roll_joint", "elbow_joint"], []),
    ],
)
def test_pairs_are_seen_in_the_joints_names(joints: list[str], pairs: list[tuple[str, str, str]]) -> None:
    assert names(joints) == pairs


def test_the_first_matching_sign_wins_and_the_default_is_minus_one() -> None:
    found = robot.robot_from_document(document(mirror={"left_knee": -1, "knee": 1, "pitch": 1}))

    assert {pair.name: pair.mirror for pair in found.pairs} == {"hip_roll": -1, "knee": -1}


def test_an_explicit_pair_replaces_the_derived_one_of_its_joints() -> None:
    pair = {"left": "left_knee_joint", "right": "right_hip_roll_joint", "mirror": 1, "name": "crossed"}

    found = robot.robot_from_document(document(pairs=[pair]))

    assert [pair.as_json() for pair in found.pairs] == [pair]


def test_an_explicit_pair_may_leave_sign_and_name_to_the_rules() -> None:
    pair = {"left": "left_knee_joint", "right": "right_knee_joint"}

    found = robot.robot_from_document(document(pairs=[pair], mirror={"knee": 1}))

    assert {pair.name: pair.mirror for pair in found.pairs} == {"hip_roll": -1, "knee": 1}


@pytest.mark.parametrize(
    "changes",
    [
        {"mirror": {"knee": 0}},
        {"mirror": {"knee": True}},
        {"mirorr": {"knee": 1}},
        {"joints": []},
        {"joints": ["a", "a"]},
        {"joints": ["a,b"]},
        {"joints": [f"j{n}" for n in range(257)]},
        {"joints": "left_knee_joint"},
        {"slug": "A Biped"},
        {"name": 7},
        {"pairs": [{"left": "left_knee_joint", "right": "nowhere"}]},
        {"pairs": [{"left": "left_knee_joint", "right": "left_knee_joint"}]},
        {"pairs": [{"left": "left_knee_joint"}]},
        {"pairs": [{"left": "left_knee_joint", "right": "right_knee_joint", "name": "hip_roll"}]},
    ],
)
def test_a_robot_file_that_contradicts_itself_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(BadRobot) as refused:
        robot.robot_from_document(document(**changes))

    assert refused.value.errors


@pytest.mark.parametrize("other", [{}, {"robot": None}, {"robot": {}}, {**document(), "robots": []}])
def test_a_document_that_is_no_robot_is_refused(other: dict[str, Any]) -> None:
    with pytest.raises(BadRobot):
        robot.robot_from_document(other)


def test_two_pairs_of_one_name_are_refused() -> None:
    with pytest.raises(BadRobot, match="'knee' is there twice"):
        robot.pairs_of(["left_knee", "right_knee", "knee_l", "knee_r"])
