from pathlib import Path

import pytest

from driver.bodies.base import BodyError
from driver.bodies.choose import STILT, body_from, simulated_options
from driver.bodies.options import Options, options_from, parse_options


def test_a_path_alone_is_the_model_as_it_is():
    assert parse_options("robot.xml") == Options(model=Path("robot.xml"))


def test_options_come_as_a_query():
    options = parse_options("robot.xml?latency_ticks=1&noise=0.5&friction=0.3&realtime=true&seed=7")

    assert options == Options(
        model=Path("robot.xml"), latency_ticks=1, noise=0.5, friction=0.3, realtime=True, seed=7
    )


def test_options_come_as_a_table_too():
    assert options_from({"model": "robot.xml", "power": 0.5}) == parse_options("robot.xml?power=0.5")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "?noise=1",
        "robot.xml?latency=1",
        "robot.xml?latency_ticks=1.5",
        "robot.xml?latency_ticks=-1",
        "robot.xml?noise=nan",
        "robot.xml?noise=",
        "robot.xml?noise=1&noise=2",
        "robot.xml?power=0",
        "robot.xml?friction=0",
        "robot.xml?power=1e300",
        "robot.xml?realtime=maybe",
        "robot.xml?noise",
    ],
)
def test_what_is_misspelt_or_cannot_be_meant_is_refused(text: str):
    with pytest.raises(BodyError):
        parse_options(text)


def test_a_misspelt_option_is_answered_with_the_right_one():
    with pytest.raises(BodyError, match="did you mean 'latency_ticks'"):
        parse_options("robot.xml?latency_tick=1")


def test_the_demos_robot_needs_no_path():
    assert simulated_options("mujoco:stilt?noise=1").model == STILT


@pytest.mark.parametrize("text", ["robot.xml", "gazebo:robot.sdf", "python:nowhere:body", "python:os"])
def test_a_body_of_no_known_kind_is_refused(text: str):
    with pytest.raises(BodyError):
        body_from(text)
