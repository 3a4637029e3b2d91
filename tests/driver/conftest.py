from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.driver.rig import hub as fake
from tests.driver.rig.box import TestBox
from tests.driver.rig.hub import FakeHub


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[FakeHub]:
    folder = tmp_path / "hub"
    folder.mkdir()
    with fake.serving(folder) as hub:
        yield hub


@pytest.fixture
def box(tmp_path: Path, hub: FakeHub) -> Iterator[TestBox]:
    """A box that is enrolled at the hub; simulated, so that it needs no go."""
    folder = tmp_path / "box"
    folder.mkdir()
    box = TestBox(folder, hub)
    box.enrol()
    yield box
    box.close()
