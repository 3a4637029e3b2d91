from collections.abc import Iterator

import pytest

from tests.faults.site import Site, open_site


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with open_site(tmp_path_factory.mktemp("site")) as site:
        yield site
