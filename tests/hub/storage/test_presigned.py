"""What a presigned URL binds, asked of a real store that checks signatures."""

import hashlib
import http.client
import time
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from django.utils import timezone

from hub.core import ids
from hub.storage import s3
from tests.factories import NOON

BODY = b"t,g_x,g_y,g_z\n0.0,0,0,-1\n"
OTHER = b"t,g_x,g_y,g_z\n0.0,0,0,+1\n"
SHA = hashlib.sha256(BODY).hexdigest()

pytestmark = pytest.mark.usefixtures("object_store")


def call(method, url, *, body=b"", headers=None):
    """An HTTP call as plain as a driver's: no library adds a header or follows a redirect."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=10)
    try:
        connection.request(method, f"{parts.path}?{parts.query}", body, headers or {})
        response = connection.getresponse()
        return response.status, response.read(), dict(response.headers)
    finally:
        connection.close()


def put(signed, body=BODY, **changed):
    headers = {**signed.headers, **changed}
    return call("PUT", signed.url, body=body, headers={k: v for k, v in headers.items() if v is not None})[0]


@pytest.fixture
def key():
    return f"trials/{ids.new_id('trl')}/log/incoming/1/01-hang.csv"


@pytest.fixture
def signed(key):
    return s3.presign_put(key, size=len(BODY), sha256=SHA, at=timezone.now())


def test_the_url_takes_exactly_what_it_was_signed_for(signed, key):
    assert put(signed) == 200
    assert s3.digest(key) == s3.Digest(SHA, len(BODY))


def test_length_checksum_type_and_once_are_under_the_signature(signed):
    query = parse_qs(urlsplit(signed.url).query)

    assert query["X-Amz-Algorithm"] == ["AWS4-HMAC-SHA256"]
    assert set(query["X-Amz-SignedHeaders"][0].split(";")) == {
        "content-length",
        "content-type",
        "host",
        "if-none-match",
        "x-amz-checksum-sha256",
    }


def test_a_url_that_leaves_a_header_unsigned_is_never_given_out():
    url = "http://s3/b/k?X-Amz-SignedHeaders=host"

    with pytest.raises(RuntimeError, match="content-length"):
        s3._must_sign(url, {"Content-Length": "1"})


def test_it_works_once(signed, key):
    put(signed)

    assert put(signed) == 412
    assert s3.digest(key).sha256 == SHA


@pytest.mark.parametrize(
    ("body", "changed"),
    [
        (OTHER, {}),
        (BODY[:-1], {"Content-Length": str(len(BODY) - 1)}),
        (BODY + b"x", {"Content-Length": str(len(BODY) + 1)}),
        (BODY, {"Content-Type": "text/html"}),
        (BODY, {"If-None-Match": None}),
        (BODY, {"x-amz-checksum-sha256": None}),
        (OTHER, {"x-amz-checksum-sha256": "zOmjHMXzJtmqFwUjOBF0qR0+cZLT0wuWoBdVWsyM+yM="}),
    ],
)
def test_other_bytes_or_headers_are_refused_and_leave_nothing(signed, key, body, changed):
    assert put(signed, body, **changed) in (400, 403)
    assert s3.size_of(key) is None


def test_the_url_of_one_key_writes_no_other(signed, key):
    elsewhere = signed.url.replace("01-hang.csv", "02-floor.csv")

    assert call("PUT", elsewhere, body=BODY, headers=signed.headers)[0] == 403
    assert s3.size_of(key.replace("01-hang", "02-floor")) is None


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_the_url_of_a_put_does_nothing_else(signed, key, method):
    put(signed)

    assert call(method, signed.url, body=BODY, headers=signed.headers)[0] == 403
    assert s3.size_of(key) == len(BODY)


def test_a_url_is_over_when_its_time_is_over(key):
    signed = s3.presign_put(key, size=len(BODY), sha256=SHA, at=timezone.now(), lasts=timedelta(seconds=1))

    deadline = time.monotonic() + 10
    answers = {put(signed, OTHER)}  # the wrong bytes, so that nothing is stored while it still holds
    while 403 not in answers and time.monotonic() < deadline:
        answers.add(put(signed, OTHER))

    assert answers <= {400, 403}
    assert put(signed) == 403


def test_the_answer_says_when_the_url_ends():
    signed = s3.presign_get("a", filename="a.csv", at=NOON)

    assert signed.expires_at == NOON + timedelta(hours=1)
    assert parse_qs(urlsplit(signed.url).query)["X-Amz-Expires"] == ["3600"]


@pytest.mark.parametrize(
    ("filename", "saved_as"),
    [
        ("01-hang.csv", "01-hang.csv"),
        ('a"; filename="evil.html', "file"),
        ("../../etc/passwd", "file"),
        (".hidden", "file"),
        ("a\r\nSet-Cookie: x=1", "file"),
        ("ü.csv", "file"),
    ],
)
def test_a_download_is_a_file_and_never_a_page(key, filename, saved_as):
    s3.put(key, b"<script>alert(1)</script>", content_type="text/html")

    status, body, headers = call("GET", s3.presign_get(key, filename=filename, at=NOON).url)

    assert (status, body) == (200, b"<script>alert(1)</script>")
    assert headers["Content-Disposition"] == f'attachment; filename="{saved_as}"'
    assert headers["Content-Type"] == "application/octet-stream"


def test_a_download_cannot_be_turned_into_a_page(key):
    s3.put(key, b"<script>alert(1)</script>")
    url = s3.presign_get(key, filename="a.csv", at=NOON).url

    assert call("GET", url.replace("attachment", "inline"))[0] == 403


def test_without_a_signature_nothing_is_read(signed, key):
    put(signed)

    assert call("GET", signed.url.partition("?")[0])[0] == 403
