"""One byte changed on the way to the box: refused with the reason, and nothing moves."""

import pytest

from hub.web.demo.story import CONTROL
from tests.driver.rig.box import wait_for
from tests.faults.between import Alters, event, request
from tests.faults.site import Site

LISTING = request("GET", "/approvals")


def in_the_middle(content: bytes) -> bytes:
    return content[len(content) // 2 :][:16]


@pytest.mark.parametrize(
    ("mark", "reason"),
    [
        (b'"kd_scale":', "token (sheet_digest)"),
        (b'"approver":"', "token (wrong_signature)"),
        (b'"signature":"', "token (wrong_signature)"),
        (b'"rate_hz":', "contract"),
    ],
    ids=["sheet", "token", "token's signature", "contract"],
)
def test_an_offer_with_a_changed_byte_is_refused(site: Site, mark: bytes, reason: str) -> None:
    box = site.box()
    trial = site.consented(box)

    with site.hub.meeting(LISTING, Alters(mark)), box.daemon():
        (said,) = wait_for(lambda: site.refusals(trial), within_s=30)

    assert reason in said
    assert box.ran() == []
    assert (site.approval(trial)["state"], site.starts(trial)) == ("issued", 0)


def test_an_onnx_file_with_a_changed_byte_is_refused(site: Site) -> None:
    box = site.box()
    trial = site.consented(box)
    altered = Alters(in_the_middle(CONTROL.file.read_bytes()))

    with site.storage.meeting(request("GET", ".onnx"), altered), box.daemon():
        (said,) = wait_for(lambda: site.refusals(trial), within_s=30)

    assert "token (onnx_digest): the ONNX file is not the one that was consented to" in said
    assert box.ran() == []
    assert site.starts(trial) == 0


@pytest.mark.parametrize("mark", [b'"signature":"', b'"at":"'], ids=["signature", "word"])
def test_a_start_whose_answer_was_changed_moves_nothing_and_is_never_tried_again(
    site: Site, mark: bytes
) -> None:
    box = site.box()
    trial = site.consented(box)

    with site.hub.meeting(event("run_started"), Alters(mark)), box.daemon():
        log = site.log_of(trial)

    (said,) = site.refusals(trial)
    assert "the answer to the start was refused" in said
    assert box.ran() == []
    assert (log["state"], log["summary"]["stopped_by"]) == ("missing", "driver_stopped")
    assert site.starts(trial) == 1


def test_a_changed_word_before_the_next_stage_ends_the_run(site: Site) -> None:
    box = site.box()
    trial = site.consented(box)

    with site.hub.meeting(request("POST", "/confirm"), Alters(b'"signature":"')), box.daemon():
        log = site.log_of(trial)

    assert box.stages() == ["hang"]
    assert log["summary"]["stopped_by"] == "link_lost"
    assert "the hub's word before the next stage was refused" in log["summary"]["reason"]
