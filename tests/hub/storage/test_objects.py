import hashlib
from datetime import timedelta

import pytest

from hub.core import ids
from hub.jobs import services as jobs
from hub.storage import s3, services
from hub.storage.s3 import ObjectMissing, ObjectTooLarge, StorageUnavailable
from hub.storage.services import Wanted
from tests.factories import NOON

BODY = b"0123456789" * 250_000  # more than one chunk
SHA = hashlib.sha256(BODY).hexdigest()


@pytest.fixture
def key(object_store):
    return f"checkpoints/{ids.new_id('ckp')}.onnx"


def test_what_lies_there_is_hashed_as_it_lies_there(key):
    s3.put(key, BODY)

    assert s3.digest(key) == s3.Digest(SHA, len(BODY))
    assert s3.size_of(key) == len(BODY)


def test_the_hubs_copy_stays_when_the_original_goes(key):
    s3.put(key, BODY)
    s3.copy(key, f"{key}.copy")
    s3.put(key, b"other")
    s3.delete(key)

    assert s3.digest(f"{key}.copy").sha256 == SHA
    assert s3.size_of(key) is None


def test_what_is_not_there_is_said_to_be_missing(key):
    for act in (s3.digest, lambda key: s3.copy(key, "b"), lambda key: s3.read(key, cap=10)):
        with pytest.raises(ObjectMissing):
            act(key)


def test_deleting_twice_is_deleting(key):
    s3.put(key, b"a")

    s3.delete(key)
    s3.delete(key)

    assert s3.size_of(key) is None


def test_a_file_is_had_up_to_the_cap_and_not_one_byte_more(key):
    s3.put(key, BODY)

    with s3.temporary(key, cap=len(BODY)) as (path, digest):
        assert path.read_bytes() == BODY
        assert path.suffix == ".onnx"
        assert digest.sha256 == SHA
    assert not path.exists()
    with pytest.raises(ObjectTooLarge):
        s3.read(key, cap=len(BODY) - 1)


def test_a_store_that_does_not_answer_is_503_and_try_again(object_store, settings):
    settings.S3_ENDPOINT = "http://127.0.0.1:9"

    with pytest.raises(StorageUnavailable) as refused:
        s3.size_of("a")

    assert (refused.value.status, refused.value.headers) == (503, {"Retry-After": "5"})


def test_a_wrong_key_for_the_store_is_our_fault_and_no_refusal(object_store, settings):
    settings.S3_SECRET_KEY = "wrong"

    with pytest.raises(Exception, match="SignatureDoesNotMatch"):
        s3.put("a", b"a")


def test_before_the_hubs_own_store_ever_ran_it_is_not_there(settings, tmp_path):
    settings.S3_ENDPOINT, settings.HUB_DATA = "", tmp_path

    with pytest.raises(StorageUnavailable):
        s3.endpoint()


def test_a_device_learns_the_host_that_urls_name(object_store, settings):
    settings.S3_PUBLIC_ENDPOINT = "https://objects.example:9000"

    assert s3.public_host() == "objects.example:9000"
    assert s3.presign_get("a", filename="a", at=NOON).url.startswith("https://objects.example:9000/")


def test_what_was_released_is_deleted_by_the_job(ana, key):
    s3.put(key, b"abc")
    (obj,) = services.reserve(owner=ana.account, wanted=[Wanted(key=key, bytes=3, sha256=SHA)], at=NOON)
    services.release(obj=obj, at=NOON)

    jobs.run_due(at=NOON + timedelta(hours=1))

    assert s3.size_of(key) is None
