import hashlib
import tomllib
from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.conf import settings
from django.test import override_settings
from django.utils import timezone
from rest_framework.test import APIClient

from hub.accounts.actors import SYSTEM
from hub.accounts.models import User
from hub.audit.models import Event
from hub.campaigns.models import Campaign, Checkpoint, Contract, TrainingRun
from hub.campaigns.services import checkpoints, lineage, robots
from hub.jobs import services as jobs
from hub.storage import s3
from hub.storage.models import StorageUsage, StoredObject
from hub.storage.services import NotReserved
from tests.factories import NOON
from tests.hub.campaigns import factories as made

pytestmark = pytest.mark.usefixtures("object_store")


def declared(body: bytes, **changes: Any) -> dict[str, Any]:
    return {
        "run": "walk-7",
        "step": 276,
        "bytes": len(body),
        "onnx_sha256": hashlib.sha256(body).hexdigest(),
        "sidecar": made.SIDECAR,
        **changes,
    }


def declare(browser: APIClient, campaign: Campaign, body: bytes, **changes: Any) -> Any:
    return browser.post(f"/api/v1/campaigns/{campaign.pk}/checkpoints", declared(body, **changes))


def put(answer: Any, body: bytes) -> int:
    upload = answer.json()["upload"]
    return httpx.put(upload["url"], headers=upload["headers"], content=body).status_code


def complete(browser: APIClient, answer: Any) -> Any:
    return browser.post(f"/api/v1/checkpoints/{answer.json()['checkpoint']['id']}/complete")


def uploaded(browser: APIClient, campaign: Campaign, body: bytes, **changes: Any) -> Any:
    answer = declare(browser, campaign, body, **changes)
    assert put(answer, body) == 200
    return complete(browser, answer)


def held(user: User) -> int:
    return StorageUsage.objects.get(account=user.account).bytes


def test_a_checkpoint_is_uploaded_verified_and_has_its_contract(
    browser: APIClient, campaign: Campaign, ana: User
) -> None:
    body = made.onnx()

    said = uploaded(browser, campaign, body).json()

    assert (said["run"], said["step"], said["bytes"]) == ("walk-7", 276, len(body))
    assert said["onnx_sha256"] == hashlib.sha256(body).hexdigest()
    assert said["verified_at"] is not None
    assert said["contract"]["name"].startswith("stilt/")
    document = said["contract"]["document"]
    assert (document["rate_hz"], len(document["joints"])) == (50, 12)
    assert browser.get(f"/api/v1/checkpoints/{said['id']}").json() == said
    assert held(ana) == len(body)


def test_what_is_kept_is_a_copy_that_no_url_can_write(browser: APIClient, campaign: Campaign) -> None:
    body = made.onnx()
    answer = declare(browser, campaign, body)
    put(answer, body)
    incoming = StoredObject.objects.get().key

    complete(browser, answer)

    kept = Checkpoint.objects.get().object
    assert kept is not None
    assert kept.state == "stored"
    assert kept.key != incoming
    assert kept.key.startswith("checkpoints/step_276/")
    assert s3.digest(kept.key) == s3.Digest(hashlib.sha256(body).hexdigest(), len(body))


def test_a_url_takes_the_declared_bytes_and_no_others(browser: APIClient, campaign: Campaign) -> None:
    answer = declare(browser, campaign, made.onnx())

    assert put(answer, made.onnx("free_step_50")) >= 400
    assert complete(browser, answer).json()["type"].endswith("/object-missing")


def test_completing_twice_changes_nothing(browser: APIClient, campaign: Campaign) -> None:
    first = uploaded(browser, campaign, made.onnx())

    second = browser.post(f"/api/v1/checkpoints/{first.json()['id']}/complete")

    assert second.status_code == 200
    assert second.json() == first.json()
    assert Event.objects.filter(action="checkpoint.verified").count() == 1


def test_checkpoints_of_one_kind_share_a_contract(browser: APIClient, campaign: Campaign) -> None:
    uploaded(browser, campaign, made.onnx())
    uploaded(browser, campaign, made.onnx("free_step_279"), step=279)

    assert Contract.objects.count() == 1
    assert TrainingRun.objects.get().name == "walk-7"
    assert Contract.objects.get().checkpoints.count() == 2


def test_an_upload_that_is_not_there_yet_can_still_come(browser: APIClient, campaign: Campaign) -> None:
    answer = declare(browser, campaign, made.onnx())
    early = complete(browser, answer)

    put(answer, made.onnx())

    assert early.status_code == 422
    assert complete(browser, answer).status_code == 200


def test_a_file_without_what_its_contract_needs_is_refused_and_told_what(
    browser: APIClient, campaign: Campaign, ana: User
) -> None:
    response = uploaded(browser, campaign, made.onnx(), sidecar=None)

    assert response.status_code == 422
    assert response.json()["type"].endswith("/checkpoint-refused")
    assert "rate_hz = 50" in response.json()["errors"]["rate_hz"][0]
    assert held(ana) == 0
    assert Event.objects.get(action="checkpoint.refused").data["errors"] == response.json()["errors"]


def test_a_file_of_another_robot_is_refused_by_its_joints(browser: APIClient, ana: User) -> None:
    table = {**made.ROBOT_FILE["robot"], "joints": ["left_wheel", "right_wheel"]}
    robots.create_robot(owner=ana.account, document={"robot": table}, by=SYSTEM, at=NOON)
    campaign = made.campaign(ana.account)

    response = uploaded(browser, campaign, made.onnx())

    assert response.status_code == 422
    assert "left_hip_roll" in response.json()["errors"]["joints"][0]


def test_what_is_no_onnx_file_is_refused(browser: APIClient, campaign: Campaign, ana: User) -> None:
    response = uploaded(browser, campaign, b"version https://git-lfs.github.com/spec/v1\n")

    assert response.status_code == 422
    assert "file" in response.json()["errors"]
    assert held(ana) == 0


def test_nothing_of_a_refused_upload_stays_in_storage(browser: APIClient, campaign: Campaign) -> None:
    uploaded(browser, campaign, b"nothing", step=9001)

    jobs.run_due(at=timezone.now() + timedelta(days=1))

    left = s3._client().list_objects_v2(Bucket=settings.S3_BUCKET, Prefix="checkpoints/step_9001/")
    assert left["KeyCount"] == 0


def test_after_a_refusal_the_step_is_declared_again(browser: APIClient, campaign: Campaign) -> None:
    refused = uploaded(browser, campaign, made.onnx(), sidecar=None)

    again = uploaded(browser, campaign, made.onnx())

    assert (refused.status_code, again.status_code) == (422, 200)
    assert Checkpoint.objects.count() == 1


def test_a_refused_upload_is_not_completed_again(browser: APIClient, campaign: Campaign) -> None:
    answer = declare(browser, campaign, b"nothing")
    put(answer, b"nothing")
    complete(browser, answer)

    response = complete(browser, answer)

    assert response.status_code == 409
    assert response.json()["type"].endswith("/not-reserved")


def test_bytes_that_changed_in_storage_are_refused(browser: APIClient, campaign: Campaign, ana: User) -> None:
    body = made.onnx()
    answer = declare(browser, campaign, body)
    s3.put(StoredObject.objects.get().key, body[:-1] + bytes([body[-1] ^ 1]))

    response = complete(browser, answer)

    assert response.status_code == 422
    assert "onnx_sha256" in response.json()["errors"]
    assert held(ana) == 0


@pytest.mark.parametrize("more", [b"", b"and more"])
def test_a_size_other_than_declared_is_refused(browser: APIClient, campaign: Campaign, more: bytes) -> None:
    body = made.onnx()
    answer = declare(browser, campaign, body)
    s3.put(StoredObject.objects.get().key, body + more if more else body[:100])

    assert complete(browser, answer).status_code == 422


def test_declaring_again_moves_the_room_to_the_new_upload(
    browser: APIClient, campaign: Campaign, ana: User
) -> None:
    first = declare(browser, campaign, b"x" * 1000)

    second = declare(browser, campaign, made.onnx())

    assert first.json()["checkpoint"]["id"] == second.json()["checkpoint"]["id"]
    assert first.json()["upload"]["url"] != second.json()["upload"]["url"]
    assert held(ana) == len(made.onnx())


def test_refusing_an_old_upload_leaves_the_new_one_alone(browser: APIClient, campaign: Campaign) -> None:
    put(declare(browser, campaign, b"nothing"), b"nothing")
    as_it_was = Checkpoint.objects.select_related("object").get()
    again = declare(browser, campaign, made.onnx())
    put(again, made.onnx())

    with pytest.raises(NotReserved):
        checkpoints.complete_checkpoint(checkpoint=as_it_was, by=SYSTEM, at=timezone.now())

    assert complete(browser, again).status_code == 200


def test_a_verified_step_is_taken_and_says_whether_it_is_the_same(
    browser: APIClient, campaign: Campaign
) -> None:
    mine = uploaded(browser, campaign, made.onnx()).json()

    same = declare(browser, campaign, made.onnx())
    other = declare(browser, campaign, made.onnx("free_step_50"))

    assert (same.status_code, other.status_code) == (409, 409)
    assert (same.json()["same"], other.json()["same"]) == (True, False)
    assert same.json()["checkpoint"] == mine["id"]


def test_a_checkpoint_beyond_the_cap_is_refused_and_one_at_the_cap_is_not(
    browser: APIClient, campaign: Campaign
) -> None:
    with override_settings(CHECKPOINT_BYTES=1000):
        assert declare(browser, campaign, b"x" * 1001).status_code == 413
        assert declare(browser, campaign, b"x" * 1000).status_code == 201


def test_a_checkpoint_beyond_the_quota_leaves_nothing(browser: APIClient, campaign: Campaign) -> None:
    with override_settings(STORAGE_QUOTA_BYTES=999):
        response = declare(browser, campaign, b"x" * 1000)

    assert response.status_code == 413
    assert response.json()["type"].endswith("/over-quota")
    assert not Checkpoint.objects.exists()
    assert not StoredObject.objects.exists()


def test_a_checkpoint_names_its_parent(browser: APIClient, campaign: Campaign) -> None:
    parent = made.checkpoint(campaign)

    answer = declare(browser, campaign, made.onnx(), step=800, parent=parent.pk)

    assert answer.json()["checkpoint"]["parent"] == parent.pk


def test_a_parent_is_a_verified_checkpoint_of_the_campaign(
    browser: APIClient, campaign: Campaign, ana: User
) -> None:
    elsewhere = made.checkpoint(made.campaign(ana.account, name="other"))
    unverified = declare(browser, campaign, b"abc", step=1).json()["checkpoint"]["id"]

    for parent in (elsewhere.pk, unverified, "ckp_nowhere"):
        response = declare(browser, campaign, made.onnx(), parent=parent)
        assert response.status_code == 422
        assert "parent" in response.json()["errors"]


def test_a_misspelt_sidecar_is_refused_before_anything_is_uploaded(
    browser: APIClient, campaign: Campaign
) -> None:
    sidecar = {"contract": {**made.SIDECAR["contract"], "rate": 50}}

    response = declare(browser, campaign, made.onnx(), sidecar=sidecar)

    assert response.status_code == 422
    assert "sidecar.rate" in response.json()["errors"]
    assert not Checkpoint.objects.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"step": -1},
        {"step": True},
        {"bytes": 0},
        {"onnx_sha256": "F" * 64},
        {"onnx_sha256": "f" * 63},
        {"run": ""},
        {"run": "x" * 121},
        {"sidecar": "rate_hz = 50"},
        {"color": "red"},
    ],
    ids=str,
)
def test_a_declaration_that_does_not_fit_is_refused(
    browser: APIClient, campaign: Campaign, change: dict[str, Any]
) -> None:
    response = declare(browser, campaign, made.onnx(), **change)

    assert response.status_code == 422
    assert set(response.json()["errors"]) == set(change)


def test_checkpoints_are_found_by_run_step_and_lineage(browser: APIClient, campaign: Campaign) -> None:
    one, two = made.checkpoint(campaign, step=400), made.checkpoint(campaign, step=700)
    other = made.checkpoint(campaign, run="walk-8", step=700)
    lineage.end_lineage(checkpoint=two, reason="fell", by=SYSTEM, at=NOON)

    def found(**query: Any) -> set[str]:
        answer = browser.get(f"/api/v1/campaigns/{campaign.pk}/checkpoints", query)
        return {each["id"] for each in answer.json()["items"]}

    assert found(run="walk-7") == {one.pk, two.pk}
    assert found(step=700) == {two.pk, other.pk}
    assert found(run="walk-7", step="700") == {two.pk}
    assert found(lineage="ended") == {two.pk}
    assert found(lineage="open") == {one.pk, other.pk}


def test_the_sidecar_is_the_file_that_lies_beside_the_demo(browser: APIClient, campaign: Campaign) -> None:
    said = uploaded(browser, campaign, made.onnx()).json()

    assert said["sidecar"] == tomllib.loads((made.DEMO / "contract.toml").read_text())
