"""The tutorial of primers, followed as written from a clone: the testbed that it brings up, used and taken down."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.pages import Reader, reading

PAGE = "tutorial/warm-cronjobs.md"


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """Someone with a clone and no cluster; what they have brought up goes, wherever they stopped."""
    with reading(None, tmp_path / "clone") as found:
        try:
            yield found
        finally:
            found.type(".venv/bin/python -m testbed down")


def test_a_cron_job_is_primed(reader: Reader) -> None:
    reader.follow(PAGE)
    assert reader.type(".venv/bin/python -m testbed status") == ""
