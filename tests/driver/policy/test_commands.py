import json
import socket
from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest

from driver.policy.commands import Constant, NoSource, Script, Udp, limited, source_for
from driver.policy.order import Limits, Teleop
from tests.driver.policy.puppet import order


@pytest.fixture
def udp() -> Iterator[Udp]:
    with closing(Udp("127.0.0.1", 0)) as source:
        source.begin(10.0)
        yield source


def send(source: Udp, *packets: bytes) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for packet in packets:
            sender.sendto(packet, ("127.0.0.1", source.port))


def test_a_stages_own_command_comes_before_the_boxs_teleop():
    source = source_for(order(values={"command": [0.1, 0, 0]}, teleop=Teleop(source="zero")))

    assert source.command(0.0).tolist() == [0.1, 0.0, 0.0]


def test_without_a_command_the_robot_is_asked_to_stand():
    assert source_for(order()).command(0.0).tolist() == [0.0, 0.0, 0.0]


def test_a_script_says_its_steps_in_turn_and_then_the_stage_is_over():
    script = Script(((3.0, 0.2, 0.0, 0.0), (2.0, 0.0, 0.1, 0.0)))
    script.begin(100.0)

    said = [script.command(100.0 + at).tolist() for at in (0.0, 2.98, 3.0, 4.98)]

    assert said == [[0.2, 0.0, 0.0], [0.2, 0.0, 0.0], [0.0, 0.1, 0.0], [0.0, 0.1, 0.0]]
    assert [script.is_over(100.0 + at) for at in (4.98, 5.0)] == [False, True]


def test_a_script_without_steps_is_no_source():
    with pytest.raises(NoSource, match="no steps"):
        source_for(order(teleop=Teleop(source="script:walk")))


@pytest.mark.parametrize(
    "source", ["udp:192.0.2.7:9000", "udp:0.0.0.0:9000", "udp:nowhere", "udp:127.0.0.1:x", "joystick"]
)
def test_commands_are_taken_from_this_machine_only(source: str):
    with pytest.raises(NoSource):
        source_for(order(teleop=Teleop(source=source)))


def test_the_newest_packet_is_the_command(udp: Udp):
    send(udp, b"[0.1, 0, 0]", b"[0.2, 0, 0]")

    assert udp.command(10.02).tolist() == [0.2, 0.0, 0.0]
    assert udp.age_s(10.02) == 0.0


def test_a_silent_stream_means_standing_after_a_fifth_of_a_second(udp: Udp):
    send(udp, b"[0.1, 0, 0]")
    udp.command(10.0)

    assert udp.command(10.2).tolist() == [0.1, 0.0, 0.0]
    assert udp.command(10.22).tolist() == [0.0, 0.0, 0.0]


def test_silence_counts_from_the_beginning(udp: Udp):
    assert udp.command(10.5).tolist() == [0.0, 0.0, 0.0]
    assert udp.age_s(10.5) == pytest.approx(0.5)


@pytest.mark.parametrize(
    "packet",
    [
        b"",
        b"hello",
        b"[0.1, 0]",
        b"[0.1, 0, NaN]",
        b"[1e999, 0, 0]",
        b'["0.1", 0, 0]',
        b"[true, 0, 0]",
        b"{}",
        b"[" * 5000,
        b"\xff",
    ],
)
def test_what_is_no_command_is_not_heard(udp: Udp, packet: bytes):
    send(udp, json.dumps([0.1, 0.0, 0.0]).encode(), packet)

    assert udp.command(10.02).tolist() == [0.1, 0.0, 0.0]


def test_what_is_no_command_does_not_keep_a_stream_alive(udp: Udp):
    send(udp, b"hello")
    udp.command(10.5)

    assert udp.age_s(10.5) == pytest.approx(0.5)


def test_the_boxs_limits_hold_for_each_axis():
    inside = limited(np.array([2.0, -2.0, 0.1]), Limits(command=(0.8, 0.3, 0.6)))

    assert inside.tolist() == [0.8, -0.3, 0.1]


def test_a_constant_command_never_falls_silent():
    assert Constant((0.1, 0.0, 0.0)).age_s(1e9) is None
