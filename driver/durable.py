"""Files that survive a power cut: written aside, synced, renamed, and the folder synced too."""

import os
from pathlib import Path


def write(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Replace the file or leave it as it was; nobody ever reads a half of it."""
    draft = path.with_name(path.name + ".part")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(path)
    sync_folder(path.parent)


def remove(path: Path) -> None:
    """Remove the file where there is one, so that it stays removed."""
    path.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make a rename or a removal outlive a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
