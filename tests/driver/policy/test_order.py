import copy
import json
from typing import Any

import pytest

from driver.policy.order import BadOrder, read_order
from tests.driver.policy.puppet import CONTRACT

ORDER: dict[str, Any] = {
    "stage": {
        "name": "floor",
        "duration_s": 10.0,
        "judged": True,
        "free_standing": True,
        "values": {"command": [0, 0, 0]},
    },
    "sheet": {
        "kd_scale": 1.0,
        "power_scale": 1.0,
        "gain_profile": "policy",
        "abort_rules": [{"metric": "tilt_deg", "op": ">", "value": 45.0, "for_s": 0.0, "stages": ["floor"]}],
    },
    "contract": CONTRACT,
    "onnx": "/var/lib/trial-driver/policy.onnx",
    "log": "/var/lib/trial-driver/01-floor.csv",
    "limits": {"tilt_deg": 60, "joint_pos": {"left_knee": [0.0, 2.0]}, "command": [0.8, 0.3, 0.6]},
    "gains": None,
    "teleop": None,
    "simulated": False,
    "seed": None,
    "t0_s": 5.0,
}


def written(path: str = "", value: Any = None) -> bytes:
    """The order with one value changed, by its dotted path."""
    order = copy.deepcopy(ORDER)
    if path:
        *way, last = path.split(".")
        table: Any = order
        for step in way:
            table = table[int(step) if step.isdigit() else step]
        table[last] = value
    return json.dumps(order).encode()


def test_an_order_is_read_whole():
    order = read_order(written())

    assert order.stage.free_standing
    assert order.abort_rules[0].stages == ("floor",)
    assert order.limits.joint_pos == {"left_knee": (0.0, 2.0)}
    assert order.limits.ramp_s == 3.0
    assert order.contract.joints == tuple(CONTRACT["joints"])


def test_a_script_comes_with_its_steps():
    order = read_order(written("teleop", {"source": "script:walk", "script": [[3.0, 0.2, 0, 0]]}))

    assert order.teleop is not None
    assert order.teleop.steps == ((3.0, 0.2, 0, 0),)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("limits.tilt_degrees", 60),
        ("stage.values.comand", [0, 0, 0]),
        ("stage.values.command", [0, 0]),
        ("stage.values.command_script", "rm -rf /"),
        ("stage.duration_s", 0),
        ("stage.duration_s", "10"),
        ("sheet.kd_scale", -1),
        ("sheet.abort_rules.0.metric", "tilt"),
        ("sheet.abort_rules.0.op", "=="),
        ("sheet.abort_rules.0.for_s", -1),
        ("contract.rate_hz", 0),
        ("limits.joint_pos", {"left_knee": [0.0]}),
        ("teleop", {"source": "script:walk", "script": [[3.0, 0.2]]}),
        ("seed", 1.5),
        ("shell", "true"),
    ],
)
def test_what_is_misspelt_or_cannot_be_meant_is_refused_by_its_path(path: str, value: Any):
    with pytest.raises(BadOrder) as refused:
        read_order(written(path, value))

    assert any(path.startswith(found) or found.startswith(path) for found in refused.value.errors)


@pytest.mark.parametrize("raw", [b"", b"[]", b"{}", b'{"stage": 1, "stage": 2}', b"\xff"])
def test_what_is_no_order_is_refused_in_words(raw: bytes):
    with pytest.raises(BadOrder):
        read_order(raw)


def test_a_gain_profile_that_the_box_lacks_is_refused():
    with pytest.raises(BadOrder, match="soft"):
        read_order(written("sheet.gain_profile", "soft"))


def test_gains_by_name_must_name_every_joint():
    with pytest.raises(BadOrder, match="right_knee"):
        read_order(
            written("gains", {"stiffness": {"left_hip": 1, "left_knee": 1, "right_hip": 1}, "damping": 2})
        )
