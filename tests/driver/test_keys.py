from pathlib import Path

import pytest

from driver import keys
from driver.keys import KeyRefused


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "device.key"


def test_a_new_key_is_private_and_reads_back(path: Path) -> None:
    key = keys.generate(path)

    assert path.stat().st_mode & 0o777 == 0o600
    assert keys.load(path).encode() == key.encode()


def test_a_key_is_never_overwritten(path: Path) -> None:
    key = keys.generate(path)

    with pytest.raises(KeyRefused, match="exists already"):
        keys.generate(path)

    assert keys.load(path).encode() == key.encode()


def test_a_key_that_others_may_read_is_refused_with_the_remedy(path: Path) -> None:
    keys.generate(path)
    path.chmod(0o640)

    with pytest.raises(KeyRefused, match="chmod 600"):
        keys.load(path)


@pytest.mark.parametrize("held", [b"", b"short", b"A" * 42, b"\xff" * 43, b"A" * 199])
def test_a_file_that_holds_no_key_is_refused(path: Path, held: bytes) -> None:
    keys.generate(path)
    path.write_bytes(held)

    with pytest.raises(KeyRefused, match="does not hold a key"):
        keys.load(path)


def test_an_absent_key_names_enrolment(path: Path) -> None:
    with pytest.raises(KeyRefused, match="trial-driver enroll"):
        keys.load(path)


def test_a_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    keys.generate(path)
    link = tmp_path / "link.key"
    link.symlink_to(path)

    with pytest.raises(KeyRefused, match="cannot be opened"):
        keys.load(link)
