"""The last check before Velero gets an object: when it is repeated."""

from datetime import timedelta

import pytest

from foresail.plan import ReadResult
from foresail.selfservice.access.view import AccessView, PodCheck, PodsChecked
from foresail.selfservice.requests.authorization import Waiting, authorize
from tests.unit.selfservice.policies import policy
from tests.unit.selfservice.request_rows import NOW
from tests.unit.selfservice.requests.test_decide import request, view


@pytest.mark.parametrize(("age", "is_read"), [(1, False), (2, True), (59, True), (61, True)])
def test_a_read_that_failed_is_repeated_and_never_in_the_past(age: int, is_read: bool) -> None:
    wish = PodCheck("red")
    began, failed = NOW - timedelta(seconds=age), PodsChecked(problem="it is down")
    access = AccessView(read_result=ReadResult(wish, failed, began, 1))
    found = authorize(view(request(), policy=policy(), access=access), {}, NOW)
    assert isinstance(found, Waiting)
    assert found.read == (wish if is_read else None)
    assert found.wake_at == (None if is_read else NOW + timedelta(seconds=1))
