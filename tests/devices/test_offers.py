"""What a box reads: the approvals it may run, with token, sheet and file."""

from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from django.utils import timezone

from devices.models import Approval
from devices.services import approvals
from driver.wire import canonical
from driver.wire.sheet import sheet_digest
from hub.accounts.models import User
from tests import factories
from tests.devices import factories as made
from tests.devices.factories import ERRANDS, Box


def offers(box: Box, query: str = "") -> list[dict]:
    response = box.get(f"{box.path}/approvals{query}")
    assert response.status_code == 200, response.content
    return response.json()["items"]


def test_an_offer_has_the_shape_that_is_written_down(box: Box, ana: User) -> None:
    approval = made.issued(box.device, ana, at=timezone.now())

    (offer,) = offers(box)

    assert set(offer) == {"approval_id", "state", "token", "run_sheet", "checkpoint", "stop_requested_at"}
    assert (offer["approval_id"], offer["state"]) == (approval.pk, "issued")
    assert offer["token"] == canonical.object_of(approval.token.encode())
    assert offer["run_sheet"] == ERRANDS.documents[approval.subject_id]
    assert set(offer["checkpoint"]) == {"url", "bytes", "onnx_sha256", "contract"}
    assert offer["checkpoint"]["onnx_sha256"] == approval.onnx_sha256
    assert offer["checkpoint"]["contract"] == approval.checkpoint.contract.document


def test_the_sheet_hashes_to_what_the_token_says_though_json_has_many_spellings(box: Box, ana: User) -> None:
    subject_id = ERRANDS.new(kd_scale=1.0, power_scale=0.1 + 0.2, tiny=1e-7, notes="µ – ☃", whole=10)
    made.issued(box.device, ana, at=timezone.now(), subject_id=subject_id)

    (offer,) = offers(box)

    assert sheet_digest(offer["run_sheet"]) == offer["token"]["payload"]["run_sheet_sha256"]


def test_a_later_change_of_the_subject_does_not_reach_the_box(box: Box, ana: User) -> None:
    approval = made.issued(box.device, ana, at=timezone.now())
    before = offers(box)[0]["run_sheet"]
    ERRANDS.documents[approval.subject_id] = {"kd_scale": 9.0}

    assert offers(box)[0]["run_sheet"] == before


def test_the_file_s_url_is_good_for_an_hour_and_names_a_pinned_host(box: Box, ana: User) -> None:
    made.issued(box.device, ana, at=timezone.now())

    url = urlsplit(offers(box)[0]["checkpoint"]["url"])

    assert url.netloc == "127.0.0.1:9"
    assert parse_qs(url.query)["X-Amz-Expires"] == ["3600"]


def test_a_box_is_offered_what_it_may_run_and_what_it_runs(box: Box, ana: User) -> None:
    now = timezone.now()
    issued, running = made.issued(box.device, ana, at=now), made.running(box, ana, at=now)
    made.requested(box.device, ana, at=now)
    revoked = approvals.revoke_approval(
        approval=made.issued(box.device, ana, at=now), reason="", by=factories.actor(ana), at=now
    )

    assert [offer["approval_id"] for offer in offers(box)] == [running.pk, issued.pk]
    assert [offer["approval_id"] for offer in offers(box, "?state=issued%2Crunning")] == [
        running.pk,
        issued.pk,
    ]
    assert [offer["approval_id"] for offer in offers(box, "?state=issued")] == [issued.pk]
    (ended,) = offers(box, "?state=revoked")
    assert (ended["approval_id"], ended["checkpoint"]["url"]) == (revoked.pk, None)


def test_what_ran_out_is_offered_no_more(box: Box, ana: User) -> None:
    made.issued(box.device, ana, at=timezone.now() - timedelta(hours=13))

    assert offers(box) == []
    assert [offer["state"] for offer in offers(box, "?state=expired")] == ["expired"]


def test_a_run_that_is_to_stop_says_so(box: Box, ana: User) -> None:
    approval = made.running(box, ana, at=timezone.now())
    assert offers(box)[0]["stop_requested_at"] is None

    approvals.revoke_approval(approval=approval, reason="", by=factories.actor(ana), at=timezone.now())

    assert offers(box)[0]["stop_requested_at"].endswith("Z")


@pytest.mark.parametrize(
    "query", ["?state=moving", "?state=issued,", "?state=", "?device=x", "?state=a&state=b"]
)
def test_a_state_that_there_is_not_is_422(box: Box, query: str) -> None:
    assert box.get(f"{box.path}/approvals{query}").status_code == 422


def test_offers_come_in_pages(box: Box, ana: User) -> None:
    asked = [made.issued(box.device, ana, at=timezone.now()).pk for _ in range(3)]

    first = box.get(f"{box.path}/approvals?limit=2").json()
    second = box.get(f"{box.path}/approvals?limit=2&cursor={first['next']}").json()

    listed = [offer["approval_id"] for page in (first, second) for offer in page["items"]]
    assert listed == asked[::-1]
    assert second["next"] is None


def test_a_page_of_offers_takes_as_many_queries_as_one_offer(
    box: Box, ana: User, django_assert_max_num_queries
) -> None:
    for _ in range(4):
        made.issued(box.device, ana, at=timezone.now())

    with django_assert_max_num_queries(9):
        assert len(offers(box)) == 4


def test_a_box_is_offered_nothing_of_another(box: Box, ana: User, lab) -> None:
    second = made.box(lab, ana, name="second")
    made.issued(box.device, ana, at=timezone.now())

    assert offers(second) == []
    assert Approval.objects.count() == 1
