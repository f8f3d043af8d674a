"""No admission policy is off while an API server starts: a sample of `make api-server-starts`."""

import os

import pytest

from testbed import Cluster, Options
from tests.redteam.api_server_starts import flooded, furnish

pytestmark = pytest.mark.full


# If a killed server resets a socket before the handshake, CPython's ssl leaves it to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_no_forbidden_object_is_admitted_while_the_api_server_starts() -> None:
    with Cluster.create(f"pytest-{os.getpid()}-starts", Options(), owned=True) as cluster:
        furnish(cluster)
        found = flooded(cluster, 3)
    assert found["admitted"] == 0, found
    assert found["sent"] > 100, found
    assert found["harmless"] > 0, found
