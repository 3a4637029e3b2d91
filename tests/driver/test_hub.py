"""What the driver makes of a hub's answers: told, refused for good, or try again. There is no fourth."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from driver.answers import HubRefused, HubUnreachable
from driver.box import Box
from driver.hub import BytesRefused, Storage, UrlExpired, UrlRefused
from tests.driver.rig.box import TestBox
from tests.driver.rig.hub import Answer, FakeHub, NoAnswer, problem


@pytest.fixture
def parts(box: TestBox) -> Box:
    return box.box()


def always(answer: Exception) -> Any:
    def instead() -> None:
        raise answer

    return instead


HTML = "<html>please sign in to the hotel</html>"


@pytest.mark.parametrize(
    "answer",
    [
        Answer(500, "oops", kind="text/plain"),
        Answer(502, HTML, kind="text/html"),
        Answer(503, {"detail": "busy"}),
        Answer(504, b""),
        Answer(429, {"detail": "slow down"}),
        Answer(200, HTML, kind="text/html"),
        Answer(200, '{"items": [', kind="application/json"),
        Answer(200, b"", kind="application/json"),
        Answer(200, "[]", kind="application/json"),
        Answer(200, '{"items": {}}', kind="application/json"),
        Answer(200, '{"items": [{"approval_id": 1}]}', kind="application/json"),
        Answer(200, '{"items": [], "items": []}', kind="application/json"),
        Answer(302, HTML, kind="text/html", location="http://portal.example/"),
        Answer(404, HTML, kind="text/html"),
        Answer(403, "{}", kind="application/json"),
        NoAnswer(),
    ],
    ids=str,
)
def test_what_is_not_the_hubs_own_answer_is_tried_again(parts: Box, hub: FakeHub, answer: Exception) -> None:
    hub.instead["list_device_approvals"] = always(answer)

    with pytest.raises(HubUnreachable):
        parts.hub.list_device_approvals("issued")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 415, 422, 428])
def test_a_problem_document_is_a_refusal_for_good(parts: Box, hub: FakeHub, status: int) -> None:
    hub.instead["confirm_approval"] = always(problem(status, "not-now", "Because."))

    with pytest.raises(HubRefused, match="Because") as refused:
        parts.hub.confirm_approval("apr_1")

    assert (refused.value.status, refused.value.slug) == (status, "not-now")


@pytest.mark.parametrize(
    ("said", "wait_s"),
    [("7", 7.0), ("99999", 120.0), ("soon", None), ("", None)],
    ids=["short", "absurd", "bad", "none"],
)
def test_retry_after_is_honoured_up_to_a_cap(
    parts: Box, hub: FakeHub, said: str, wait_s: float | None
) -> None:
    hub.instead["list_device_approvals"] = always(Answer(503, {}, retry_after=said))

    with pytest.raises(HubUnreachable) as unreachable:
        parts.hub.list_device_approvals("issued")

    assert unreachable.value.retry_after_s == wait_s


def test_retry_after_may_be_a_date(parts: Box, hub: FakeHub) -> None:
    later = (hub.now() + timedelta(seconds=30)).strftime("%a, %d %b %Y %H:%M:%S GMT")
    hub.instead["list_device_approvals"] = always(Answer(429, {}, retry_after=later))

    with pytest.raises(HubUnreachable) as unreachable:
        parts.hub.list_device_approvals("issued")

    assert unreachable.value.retry_after_s == pytest.approx(30, abs=2)


def test_an_answer_without_an_end_is_given_up(parts: Box, hub: FakeHub) -> None:
    hub.instead["list_device_approvals"] = always(Answer(200, b" " * (5 * 2**20), kind="application/json"))

    with pytest.raises(HubUnreachable, match="too long"):
        parts.hub.list_device_approvals("issued")


def test_a_clock_that_is_outside_is_set_once_by_the_hubs_time(parts: Box, hub: FakeHub) -> None:
    hub.ahead = timedelta(hours=3)

    assert parts.hub.list_device_approvals("issued") == []

    assert hub.calls.count("list_device_approvals") == 2
    assert parts.clock.now() - datetime.now(UTC) == pytest.approx(
        timedelta(hours=3), abs=timedelta(seconds=2)
    )


def test_a_hub_that_never_likes_the_clock_is_asked_only_twice(parts: Box, hub: FakeHub) -> None:
    hub.instead["list_device_approvals"] = always(
        problem(401, "clock-outside", now="2026-01-01T00:00:00.000Z")
    )

    with pytest.raises(HubRefused):
        parts.hub.list_device_approvals("issued")

    assert hub.calls.count("list_device_approvals") == 2


def test_a_small_skew_is_learned_from_the_hubs_date(parts: Box, hub: FakeHub) -> None:
    hub.ahead = timedelta(seconds=90)

    parts.hub.list_device_approvals("issued")

    assert parts.clock.skew == pytest.approx(timedelta(seconds=90), abs=timedelta(seconds=2))


def test_a_list_is_read_to_its_last_page(parts: Box, hub: FakeHub) -> None:
    pages = [{"items": [], "next": "second"}, {"items": [], "next": None}]

    def paged() -> None:
        raise Answer(200, pages.pop(0), kind="application/json")

    hub.instead["list_device_approvals"] = paged
    parts.hub.list_device_approvals("issued")

    assert pages == []


@pytest.mark.parametrize(
    "url",
    [
        "https://elsewhere.example/file",
        "https://s3.example.evil.example/file",
        "https://s3.example@evil.example/file",
        "https://s3.example:8443/file",
        "http://s3.example/file",
        "http://127.0.0.1:1/file",
        "ftp://s3.example/file",
        "file:///etc/passwd",
        "//s3.example/file",
        "",
    ],
)
def test_only_urls_of_pinned_hosts_are_opened(url: str) -> None:
    storage = Storage(hosts=["s3.example", "127.0.0.1:9000"], allow_http=True)

    with pytest.raises(UrlRefused):
        storage.check(url)
    storage.http.close()


def test_http_on_this_machine_is_for_a_hub_on_this_machine() -> None:
    local, remote = (Storage(hosts=["127.0.0.1:9000"], allow_http=allowed) for allowed in (True, False))

    local.check("http://127.0.0.1:9000/file")
    with pytest.raises(UrlRefused):
        remote.check("http://127.0.0.1:9000/file")
    for storage in (local, remote):
        storage.http.close()


def test_a_download_is_never_longer_than_announced(parts: Box, hub: FakeHub, tmp_path: Path) -> None:
    approval = hub.plan()
    url = f"{hub.url}/storage/onnx/{approval.approval_id}"

    with pytest.raises(BytesRefused):
        parts.storage.download(url, tmp_path / "policy.onnx", size=len(approval.onnx) - 1)

    assert not (tmp_path / "policy.onnx").exists()


def test_a_download_that_breaks_off_is_tried_again(parts: Box, hub: FakeHub, tmp_path: Path) -> None:
    approval = hub.plan()
    url = f"{hub.url}/storage/onnx/{approval.approval_id}"

    with pytest.raises(HubUnreachable):
        parts.storage.download(url, tmp_path / "policy.onnx", size=len(approval.onnx) + 1)


@pytest.mark.parametrize(
    ("status", "error"),
    [(403, UrlExpired), (400, BytesRefused), (500, HubUnreachable), (307, HubUnreachable)],
)
def test_what_the_storage_says_of_a_file(
    parts: Box, hub: FakeHub, tmp_path: Path, status: int, error: type[Exception]
) -> None:
    hub.instead["storage_put"] = always(
        Answer(status, "<Error/>", kind="application/xml", location="http://x/")
    )
    file = tmp_path / "log.csv"
    file.write_text("t\n0\n")

    with pytest.raises(error):
        parts.storage.put(f"{hub.url}/storage/log/x", {}, file)


def test_bytes_that_are_stored_already_count_as_stored(parts: Box, hub: FakeHub, tmp_path: Path) -> None:
    hub.instead["storage_put"] = always(Answer(412, "<Error/>", kind="application/xml"))
    file = tmp_path / "log.csv"
    file.write_text("t\n0\n")

    parts.storage.put(f"{hub.url}/storage/log/x", {}, file)
