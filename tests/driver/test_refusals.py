"""What the box refuses before anything moves: it says the reason to the hub, once, and runs nothing."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from nacl.signing import SigningKey

from driver import pins
from driver.loop import Did
from driver.tables import ConfigError
from driver.wire.sheet import sheet_digest
from tests.driver.rig import papers
from tests.driver.rig.box import TestBox
from tests.driver.rig.hub import DEVICE, Approval, FakeHub


def refused(box: TestBox, hub: FakeHub) -> str:
    """The reason that the hub was told; nothing ran."""
    did = box.loop().step()

    assert did is Did.NOTHING
    assert box.stages_ran() == []
    assert hub.kinds() == ["refused"]
    reason: str = hub.events[0]["data"]["reason"]
    return reason


def signed_again(hub: FakeHub, approval: Approval, *, key: SigningKey | None = None, **changes: Any) -> None:
    usual = {"approval_id": approval.approval_id, "device_id": DEVICE, "size": len(approval.onnx)}
    approval.token = papers.token(approval.sheet, key=key or hub.key, **{**usual, **changes})


def another_device(hub: FakeHub, approval: Approval) -> None:
    approval.token["payload"]["device_id"] = f"dev_{2:022d}"


def wrong_device(hub: FakeHub, approval: Approval) -> None:
    signed_again(hub, approval, device_id=f"dev_{2:022d}")


def unknown_key(hub: FakeHub, approval: Approval) -> None:
    signed_again(hub, approval, key=SigningKey.generate())


def expired(hub: FakeHub, approval: Approval) -> None:
    signed_again(hub, approval, expires_at=hub.now() - timedelta(seconds=1))


def other_approval(hub: FakeHub, approval: Approval) -> None:
    signed_again(hub, approval, approval_id=f"apr_{9:022d}")


def changed_sheet(hub: FakeHub, approval: Approval) -> None:
    approval.sheet = {**approval.sheet, "kd_scale": 1.2}


def changed_onnx(hub: FakeHub, approval: Approval) -> None:
    approval.onnx = approval.onnx[:-1] + bytes([approval.onnx[-1] ^ 1])


def shorter_onnx(hub: FakeHub, approval: Approval) -> None:
    signed_again(hub, approval, onnx_bytes=len(approval.onnx) - 1)


def other_trial(hub: FakeHub, approval: Approval) -> None:
    signed_again(hub, approval, trial_id=f"trl_{9:022d}")


def other_contract(hub: FakeHub, approval: Approval) -> None:
    signed_again(hub, approval, contract="hopper/0123456789ab")


def other_robot(hub: FakeHub, approval: Approval) -> None:
    approval.contract = {**(approval.contract or {}), "robot": "spot"}


def no_gaps(hub: FakeHub, approval: Approval) -> None:
    approval.contract = None


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (another_device, "token (wrong_signature)"),
        (wrong_device, "token (other_device)"),
        (unknown_key, "token (unknown_key)"),
        (expired, "token (expired)"),
        (other_approval, "token (other_approval)"),
        (changed_sheet, "token (sheet_digest)"),
        (changed_onnx, "token (onnx_digest)"),
        (shorter_onnx, "token (onnx_size)"),
        (other_trial, "the trial of sheet and token differ"),
        (other_contract, "the contract of sheet and token differ"),
        (other_robot, "contract"),
        (no_gaps, "contract: "),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_does_not_fit_the_consent_is_refused_by_name(
    box: TestBox, hub: FakeHub, spoil: Callable[[FakeHub, Approval], None], said: str
) -> None:
    spoil(hub, hub.plan())

    assert said in refused(box, hub)


@pytest.mark.parametrize(
    ("sheet", "said"),
    [
        ({"kd_scale": 1.6}, "kd_scale 1.6 is outside this box's limits.kd_scale [0.5, 1.5]"),
        ({"power_scale": 0.1}, "power_scale 0.1 is outside this box's limits.power_scale [0.2, 1]"),
        ({"stages": [papers.stage("floor", duration_s=121.0)]}, "stage floor: 121 s is above"),
        (
            {"stages": [papers.stage("floor", values={"command": [0.9, 0, 0]})]},
            "stage floor: command vx 0.9 is outside this box's limits.command ±0.8",
        ),
        (
            {"stages": [papers.stage("floor", values={"command": [0, 0, -0.7]})]},
            "stage floor: command wz -0.7 is outside this box's limits.command ±0.6",
        ),
        ({"stages": [papers.stage("floor", values={"command": [0.1]})]}, "the command must be 3 numbers"),
        ({"stages": [papers.stage("floor", values={"command": "walk"})]}, "the command must be 3 numbers"),
        (
            {"stages": [papers.stage("floor", values={"command_script": "dance"})]},
            "stage floor: this box has no teleop script 'dance'",
        ),
        ({"gain_profile": "stiff"}, "gain_profile 'stiff' is not among this box's [gains]"),
    ],
)
def test_a_sheet_outside_the_boxs_limits_is_refused_naming_limit_and_value(
    box: TestBox, hub: FakeHub, sheet: dict[str, Any], said: str
) -> None:
    abort = {"abort_rules": []} if "stages" in sheet else {}
    hub.plan(**sheet, **abort)

    assert said in refused(box, hub)


@pytest.mark.parametrize("at", ["limits", "below"])
def test_a_sheet_at_the_limits_runs(box: TestBox, hub: FakeHub, at: str) -> None:
    hub.plan(kd_scale=1.5 if at == "limits" else 1.49, power_scale=0.2 if at == "limits" else 0.21)

    assert box.loop().step() is Did.RAN


def test_a_stage_that_the_box_has_no_command_for_is_refused(box: TestBox, hub: FakeHub) -> None:
    hub.plan(stages=[papers.stage("floor"), papers.stage("stairs")])
    box.modes, box.has_default = {"floor": "walk"}, False

    assert "stage stairs: this box has no command for it" in refused(box, hub)


def test_a_command_that_cannot_start_is_refused_before_the_start(box: TestBox, hub: FakeHub) -> None:
    hub.plan()
    box.settings = {"stages.floor": {"command": ["no-such-program"]}}

    assert "stage floor: no-such-program is not there or not executable" in refused(box, hub)


def test_a_contract_that_the_box_does_not_take_is_refused(box: TestBox, hub: FakeHub) -> None:
    approval = hub.plan()
    box.settings = {"device": {"contracts": ["hopper/0123456789ab"]}}

    assert f"contract {approval.sheet['checkpoint']['contract']} is not among" in refused(box, hub)


def test_a_box_may_take_every_contract_of_a_robot_and_rate(box: TestBox, hub: FakeHub) -> None:
    hub.plan()
    box.settings = {"device": {"contracts": ["hopper@50"]}}

    assert box.loop().step() is Did.RAN


def test_an_approval_that_started_here_never_starts_again(box: TestBox, hub: FakeHub) -> None:
    approval = hub.plan()
    loop = box.loop()
    loop.step()
    ran = box.stages_ran()
    approval.state = "issued"

    loop.step()

    assert hub.kinds()[-1] == "refused"
    assert "used_before" in hub.events[-1]["data"]["reason"]
    assert box.stages_ran() == ran


def test_a_url_outside_the_pinned_hosts_is_not_opened(box: TestBox, hub: FakeHub) -> None:
    hub.plan()
    pinned = pins.load(box.state_dir)
    pins.save(box.state_dir, pins.Pins(**{**vars(pinned), "storage_hosts": ("s3.example",)}))

    assert "not a pinned storage host" in refused(box, hub)
    assert "storage_get" not in hub.calls


def test_no_checkpoint_is_fetched_for_a_token_that_does_not_hold(box: TestBox, hub: FakeHub) -> None:
    unknown_key(hub, hub.plan())

    refused(box, hub)

    assert "storage_get" not in hub.calls


def test_a_refusal_is_told_once_for_each_reason(box: TestBox, hub: FakeHub) -> None:
    hub.plan(kd_scale=1.6)
    loop = box.loop()

    loop.step()
    loop.step()
    box.loop().step()

    assert hub.kinds() == ["refused"]


def test_when_the_box_was_mended_the_same_consent_runs(box: TestBox, hub: FakeHub) -> None:
    hub.plan(kd_scale=1.6)
    box.loop().step()
    box.settings = {"limits": {"kd_scale": [0.5, 2.0]}}

    assert box.loop().step() is Did.RAN


def test_a_refused_trial_does_not_hold_up_the_next(box: TestBox, hub: FakeHub) -> None:
    hub.plan(1, kd_scale=1.6)
    second = hub.plan(2)

    assert box.loop().step() is Did.RAN
    assert second.state == "stopped"


def test_a_sheet_with_an_unknown_key_is_refused(box: TestBox, hub: FakeHub) -> None:
    approval = hub.plan()
    approval.sheet = {**approval.sheet, "kd_scael": 9}
    signed_again(hub, approval, run_sheet_sha256=sheet_digest(approval.sheet))

    assert "run sheet: kd_scael" in refused(box, hub)


def test_too_little_room_for_a_log_is_said_before_the_start(
    box: TestBox, hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.plan()
    monkeypatch.setattr("driver.accept.MIN_FREE", 2**60)

    assert "are free in state_dir; a run needs" in refused(box, hub)


def test_a_checkpoint_that_does_not_fit_is_fetched_once(box: TestBox, hub: FakeHub) -> None:
    changed_onnx(hub, hub.plan())
    loop = box.loop()

    loop.step()
    loop.step()

    assert hub.calls.count("storage_get") == 1


def test_a_log_that_could_not_be_written_is_said_before_the_start(box: TestBox, hub: FakeHub) -> None:
    hub.plan()
    box.settings = {"stages.floor": {"command": ["true"], "log": "/proc/nowhere/{stage}.csv"}}

    assert "this box cannot write /proc/nowhere" in refused(box, hub)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"limits": {"joint_pos": {"left_kne_joint": [-1.0, 1.0]}}}, "limits.joint_pos.left_kne_joint"),
        (
            {"gains.soft": {"stiffness": {"left_kne_joint": 60.0}, "damping": 3.0}},
            "gains.soft.stiffness.left_kne_joint",
        ),
    ],
)
def test_a_limit_on_a_joint_that_the_robot_has_not_is_refused_at_start(
    box: TestBox, changed: dict[str, Any], named: str
) -> None:
    box.settings |= changed

    with pytest.raises(
        ConfigError, match=f"{named}: hopper has no such joint; did you mean 'left_knee_joint'"
    ):
        box.box()
