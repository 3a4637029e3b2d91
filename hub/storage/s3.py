"""The only file that speaks to object storage, whichever S3 it is."""

import base64
import hashlib
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache, wraps
from pathlib import Path
from typing import IO, Any, ParamSpec, TypeVar
from urllib.parse import parse_qs, urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.conf import settings

from hub.core.problems import TooLarge, Unavailable, Unprocessable
from hub.storage import local

CHUNK = 2**20
_SAFE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,79}", re.ASCII)

P = ParamSpec("P")
T = TypeVar("T")


class StorageUnavailable(Unavailable):
    slug = "storage-unavailable"
    title = "Object storage does not answer."


class ObjectMissing(Unprocessable):
    slug = "object-missing"
    title = "The object is not in storage."


class ObjectTooLarge(TooLarge):
    slug = "object-too-large"
    title = "The object is larger than it may be."


@dataclass(frozen=True, kw_only=True)
class Presigned:
    """A URL that does one thing until a moment; a PUT works only with these headers."""

    url: str
    headers: dict[str, str]
    expires_at: datetime


@dataclass(frozen=True)
class Digest:
    """What an object's bytes are."""

    sha256: str
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Where a store is, and how one says who one is."""

    url: str
    public_url: str
    access_key: str
    secret_key: str


def endpoint() -> Endpoint:
    """The configured store, else the hub's own on this machine."""
    if settings.S3_ENDPOINT:
        return Endpoint(
            url=settings.S3_ENDPOINT,
            public_url=settings.S3_PUBLIC_ENDPOINT,
            access_key=settings.S3_ACCESS_KEY,
            secret_key=settings.S3_SECRET_KEY,
        )
    own = local.known(settings.HUB_DATA / "storage")
    if own is None:
        raise StorageUnavailable("The hub's own store has not been started yet.")
    return Endpoint(
        url=own.url,
        public_url=settings.S3_PUBLIC_ENDPOINT or own.url,
        access_key=own.access_key,
        secret_key=own.secret_key,
    )


def public_host() -> str:
    """The host and port that presigned URLs name; a device pins it when it enrols."""
    return urlsplit(endpoint().public_url).netloc


def storage_fault(call: Callable[P, T]) -> Callable[P, T]:
    """Turn what boto3 raises into refusals of the hub's."""

    @wraps(call)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return call(*args, **kwargs)
        except ClientError as error:
            raise _read_fault(error) from error
        except BotoCoreError as error:
            raise StorageUnavailable("Try again in a moment.") from error

    return guarded


def presign_put(
    key: str,
    *,
    size: int,
    sha256: str,
    at: datetime,
    lasts: timedelta | None = None,
    content_type: str = "application/octet-stream",
) -> Presigned:
    """A URL that takes these bytes under this key, and nothing else."""
    lasts = lasts or settings.PRESIGN_FOR
    checksum = base64.b64encode(_bytes_of_hex(sha256)).decode()
    params: dict[str, Any] = {
        "Key": key,
        "ContentLength": size,
        "ContentType": content_type,
        "ChecksumSHA256": checksum,
    }
    headers = {
        "Content-Length": str(size),
        "Content-Type": content_type,
        "x-amz-checksum-sha256": checksum,
    }
    if settings.S3_IF_NONE_MATCH:
        params["IfNoneMatch"] = headers["If-None-Match"] = "*"
    url = _presign("put_object", params, lasts=lasts)
    _must_sign(url, headers)
    return Presigned(url=url, headers=headers, expires_at=at + lasts)


def presign_get(key: str, *, filename: str, at: datetime, lasts: timedelta | None = None) -> Presigned:
    """A URL that downloads an object as a file; no browser shows it as a page of the store's."""
    lasts = lasts or settings.PRESIGN_FOR
    name = filename if _SAFE_NAME.fullmatch(filename) else "file"
    params = {
        "Key": key,
        "ResponseContentDisposition": f'attachment; filename="{name}"',
        "ResponseContentType": "application/octet-stream",
    }
    url = _presign("get_object", params, lasts=lasts)
    return Presigned(url=url, headers={}, expires_at=at + lasts)


@storage_fault
def ensure_bucket() -> None:
    try:
        _client().head_bucket(Bucket=settings.S3_BUCKET)
    except ClientError as error:
        if _status(error) != 404:
            raise
        _client().create_bucket(Bucket=settings.S3_BUCKET)


@storage_fault
def put(key: str, body: bytes, *, content_type: str = "application/octet-stream") -> None:
    _client().put_object(Bucket=settings.S3_BUCKET, Key=key, Body=body, ContentType=content_type)


@storage_fault
def size_of(key: str) -> int | None:
    """How many bytes an object has; None when it is not there."""
    try:
        found = _client().head_object(Bucket=settings.S3_BUCKET, Key=key)
    except ClientError as error:
        if _status(error) == 404:
            return None
        raise
    return int(found["ContentLength"])


@storage_fault
def copy(source: str, target: str) -> None:
    """Take the hub's own copy, on a key that no presigned URL can write."""
    _client().copy_object(
        Bucket=settings.S3_BUCKET, Key=target, CopySource={"Bucket": settings.S3_BUCKET, "Key": source}
    )


@storage_fault
def delete(key: str) -> None:
    """Delete an object; one that is not there is deleted already."""
    _client().delete_object(Bucket=settings.S3_BUCKET, Key=key)


def digest(key: str) -> Digest:
    """Read an object through and say what its bytes are, as they lie there now."""
    return _read_through(key, to=None, cap=None)


def read(key: str, *, cap: int) -> bytes:
    """
    Read a small object whole.

    :raises ObjectTooLarge: beyond the cap
    """
    with temporary(key, cap=cap) as (path, _):
        return path.read_bytes()


@contextmanager
def temporary(key: str, *, cap: int) -> Iterator[tuple[Path, Digest]]:
    """
    Have an object as a file for a while, with what its bytes are.

    :raises ObjectTooLarge: beyond the cap, before more than the cap is on disk
    """
    with tempfile.NamedTemporaryFile(prefix="hub-", suffix=Path(key).suffix) as file:
        found = _read_through(key, to=file, cap=cap)
        file.flush()
        yield Path(file.name), found


@storage_fault
def _read_through(key: str, *, to: IO[bytes] | None, cap: int | None) -> Digest:
    body = _client().get_object(Bucket=settings.S3_BUCKET, Key=key)["Body"]
    sha256, count = hashlib.sha256(), 0
    for chunk in body.iter_chunks(CHUNK):
        count += len(chunk)
        if cap is not None and count > cap:
            body.close()
            raise ObjectTooLarge(f"It has more than {cap} bytes.", cap=cap)
        sha256.update(chunk)
        if to is not None:
            to.write(chunk)
    return Digest(sha256.hexdigest(), count)


def _bytes_of_hex(sha256: str) -> bytes:
    raw = bytes.fromhex(sha256)
    if len(raw) != 32:
        raise ValueError("not a sha256")
    return raw


def _client() -> Any:
    where = endpoint()
    return _client_for(where.url, where.access_key, where.secret_key, settings.S3_REGION)


def _presign(method: str, params: dict[str, Any], *, lasts: timedelta) -> str:
    where = endpoint()
    client = _client_for(where.public_url, where.access_key, where.secret_key, settings.S3_REGION)
    url: str = client.generate_presigned_url(
        method, Params={"Bucket": settings.S3_BUCKET, **params}, ExpiresIn=int(lasts.total_seconds())
    )
    return url


def _must_sign(url: str, headers: dict[str, str]) -> None:
    """A header that is not signed binds nothing; a library that leaves one out must not go unseen."""
    signed = set(parse_qs(urlsplit(url).query)["X-Amz-SignedHeaders"][0].split(";"))
    if unsigned := {name.lower() for name in headers} - signed:
        raise RuntimeError(f"the presigned URL leaves unsigned: {', '.join(sorted(unsigned))}")


@lru_cache(maxsize=8)
def _client_for(url: str, access_key: str, secret_key: str, region: str) -> Any:
    return boto3.client(
        "s3",
        endpoint_url=url,
        aws_access_key_id=access_key,
        aws_secret_access_key=secret_key,
        region_name=region,
        config=Config(
            signature_version="s3v4",
            s3={"addressing_style": "path"},
            connect_timeout=3,
            read_timeout=120,  # a copy inside the store is answered when it is done
            retries={"max_attempts": 2, "mode": "standard"},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )


def _status(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _read_fault(error: ClientError) -> Exception:
    """An object that is missing, a store that fails; anything else is a fault of our own."""
    status = _status(error)
    if status == 404:
        return ObjectMissing("Upload it first.")
    if status == 429 or status >= 500:
        return StorageUnavailable("Try again in a moment.")
    return error
