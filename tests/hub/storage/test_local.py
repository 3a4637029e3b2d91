"""The store that a hub on one machine starts for itself."""

import http.client
import os
import signal
import subprocess
import sys
import time
from itertools import product

import boto3
import psutil
import pytest
from botocore.config import Config

from hub.core.children import FolderInUse
from hub.storage import local
from hub.storage.local import LocalStore, StoreError
from tests.services import ROOT


def client(known, secret=None):
    return boto3.client(
        "s3",
        endpoint_url=known.url,
        aws_access_key_id=known.access_key,
        aws_secret_access_key=secret or known.secret_key,
        region_name="us-east-1",
        config=Config(signature_version="s3v4", s3={"addressing_style": "path"}),
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with LocalStore(tmp_path_factory.mktemp("store") / "storage", bucket="hub") as store:
        client(local.known(store.folder)).put_object(Bucket="hub", Key="a/b.csv", Body=b"kept")
        yield store


@pytest.fixture
def known(store):
    return local.known(store.folder)


def is_kept(known):
    return client(known).get_object(Bucket="hub", Key="a/b.csv")["Body"].read() == b"kept"


def ask(method, port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=3)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, response.read()
    except (OSError, http.client.HTTPException):
        return 0, b""  # it speaks no HTTP, or hung up
    finally:
        connection.close()


def test_no_port_lets_anybody_delete_write_or_read_an_object(store, known):
    ports = {
        c.laddr.port for c in psutil.Process(store.process.pid).net_connections() if c.status == "LISTEN"
    }

    for port, path in product(ports, ("/buckets/hub/a/b.csv", "/hub/a/b.csv", "/buckets/hub?recursive=true")):
        for method in ("DELETE", "PUT", "POST"):
            assert not 200 <= ask(method, port, path)[0] < 300, (method, port, path)
        assert b"kept" not in ask("GET", port, path)[1], (port, path)
    assert len(ports) >= 8
    assert set(known.ports()) >= ports
    assert is_kept(known)


def test_the_stores_own_shell_gets_nowhere_without_the_certificate(store, known):
    command = [local.find_binary(), "shell", f"-master=127.0.0.1:{known.port('master')}"]
    try:
        done = subprocess.run(
            command,
            input=b"fs.rm -r /buckets/hub\nexit\n",
            env={"HOME": "/nonexistent"},
            capture_output=True,
            timeout=2,
        )
        assert b"hub" not in done.stdout
    except subprocess.TimeoutExpired:
        pass  # it never got a connection

    assert is_kept(known)


def test_a_wrong_secret_is_refused(known):
    with pytest.raises(Exception, match="SignatureDoesNotMatch"):
        client(known, secret="wrong").get_object(Bucket="hub", Key="a/b.csv")


def test_its_secrets_are_for_this_user_alone(store):
    for name in ("store.json", "s3.json", "node.key", "ca.crt"):
        assert (store.folder / name).stat().st_mode & 0o077 == 0
    assert store.folder.stat().st_mode & 0o077 == 0


def test_objects_are_synced_to_disk(store):
    assert (store.folder / "fsync-set").exists()


def test_a_second_one_on_the_same_folder_is_refused_in_words(store):
    with pytest.raises(FolderInUse, match="Another hub runs on"):
        LocalStore(store.folder, bucket="hub").start()

    assert store.is_running()


def test_killed_it_comes_back_at_the_same_address_with_everything(store, known):
    assert not store.keep()
    store.process.kill()
    store.process.wait()

    assert store.keep()

    assert local.known(store.folder) == known
    assert is_kept(known)


def test_stopped_it_leaves_no_socket_behind(store, known):
    store.stop()

    left = {port for port in known.ports() if list(local.SOCKETS.glob(f"seaweedfs-*-{port}.sock"))}
    store.start()
    assert not left


def test_a_port_that_is_taken_is_named(store, known):
    store.stop()
    with subprocess.Popen(
        [sys.executable, "-m", "http.server", str(known.port("s3")), "--bind", "127.0.0.1"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as squatter:
        while ask("GET", known.port("s3"), "/")[0] == 0:
            pass
        with pytest.raises(StoreError, match=f"Port {known.port('s3')}"):
            store.start()
        squatter.terminate()

    store.start()

    assert is_kept(known)


def test_where_its_package_does_not_exist_the_settings_for_another_are_named(tmp_path):
    with pytest.raises(StoreError, match="S3_ENDPOINT, S3_ACCESS_KEY, S3_SECRET_KEY"):
        local.find_binary(tmp_path)


def test_it_ends_with_the_hub_that_started_it(tmp_path):
    script = (
        "import sys, pathlib; from hub.storage.local import LocalStore\n"
        "store = LocalStore(pathlib.Path(sys.argv[1]), bucket='hub'); store.start()\n"
        "print(store.process.pid, flush=True); sys.stdin.read()"
    )
    hub = subprocess.Popen(
        [sys.executable, "-c", script, tmp_path / "storage"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    weed = psutil.Process(int(hub.stdout.readline()))

    os.kill(hub.pid, signal.SIGKILL)
    hub.communicate()

    started = time.monotonic()
    gone, _ = psutil.wait_procs([weed], timeout=10)
    assert gone
    assert time.monotonic() - started < 10
