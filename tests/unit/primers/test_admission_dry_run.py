"""What is asked of the API server about a pod, and what is kept of its answer."""

import asyncio
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec
import pytest

from foresail.api import batch
from foresail.kube.failures import Cause, Failure, failure
from foresail.plan import Body, Key, Kind
from foresail.primers.reads import DryRun, DryRunResult, dry_run_result, dry_run_with
from foresail.primers.shape import Shape
from foresail.primers.view import DryRunRequest
from tests.unit.primers.rows import cron_job, shape, template

T = TypeVar("T")
NOW = datetime(2026, 1, 2, 2, 50, tzinfo=UTC)
REQUEST = DryRunRequest(Key("reports", "daily"), "11111111-aaaa", shape(), generation=1)
REFUSAL = failure(403, "Forbidden", "maximum cpu usage per Container is 1, but request is 2")


class Server:
    """Answers a read of the CronJob and a dry run."""

    def __init__(self, dry_run: Any, cron: Failure | None = None) -> None:  # noqa: ANN401 - JSON, or a failure
        self.dry_run, self.cron = dry_run, cron

    async def get(self, kind: Kind, key: Key, of: type[T]) -> T | Failure:
        spec = {"jobTemplate": {"spec": {"template": msgspec.Raw(template())}}}
        whole = msgspec.json.encode({"metadata": {"name": key.name}, "spec": spec})
        assert kind == batch.CRON_JOB
        return self.cron or msgspec.json.decode(whole, type=of)

    async def create_dry_run(self, kind: Kind, key: Key, body: Body, of: type[T]) -> T | Failure:
        assert (kind.name, key.namespace) == ("Pod", "reports")
        if isinstance(self.dry_run, Failure):
            return self.dry_run
        return msgspec.json.decode(msgspec.json.encode({**body, **self.dry_run}), type=of)


def dry_run(server: Server) -> Shape | Failure:
    async def ask() -> Shape | Failure:
        return await dry_run_with(server)(REQUEST)

    return asyncio.run(ask())


def containers(cpu: str) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "work", "image": "work:1", "resources": {"requests": {"cpu": cpu}}}]}}


def test_the_answer_is_the_pod_after_admission() -> None:
    assert dry_run(Server(containers("3"))) == shape(resources={"requests": {"cpu": "3"}})


def test_a_failure_is_returned_as_it_is() -> None:
    assert dry_run(Server(REFUSAL)) == REFUSAL
    unreachable = Failure(Cause.UNREACHABLE, "timed out")
    assert dry_run(Server({}, cron=unreachable)) == unreachable


def test_a_pod_after_admission_that_cannot_be_read_is_a_refusal() -> None:
    found = dry_run(Server(containers("much")))
    assert isinstance(found, Failure)
    assert dry_run_result(REQUEST, found, NOW).refused.startswith("the pod after admission cannot be read")


@pytest.mark.parametrize(
    ("found", "refused", "is_final"),
    [
        (shape(), "", True),
        (REFUSAL, REFUSAL.message, True),
        (failure(422, "Invalid", ""), "Invalid", True),
        (failure(503, "", "busy"), "", False),
        (failure(429, "TooManyRequests", "later"), "", False),
        (Failure(Cause.UNREACHABLE, "timed out"), "", False),
    ],
    ids=["admitted", "forbidden", "no-words", "server-error", "too-many", "unreachable"],
)
def test_only_a_refusal_for_what_the_pod_is_counts_as_one(found: Shape | Failure, refused: str, is_final: bool) -> None:
    kept = dry_run_result(REQUEST, found, NOW)
    assert (kept.refused, kept.is_final) == (refused, is_final)


def test_a_refusal_counts_until_the_spec_changes_and_an_admitted_pod_until_its_shape_does() -> None:
    refused, admitted = dry_run_result(REQUEST, REFUSAL, NOW), DryRunResult(REQUEST, NOW, admitted=shape())
    same, edited = cron_job(generation=1), cron_job(generation=2)
    larger = cron_job(generation=2, shape=shape(resources={"requests": {"cpu": "4"}}))
    assert [refused.is_about(each, ()) for each in (same, edited, larger)] == [True, False, False]
    assert [admitted.is_about(each, ()) for each in (same, edited, larger)] == [True, True, False]


def test_the_resources_of_the_primer_replace_those_of_the_template() -> None:
    asked: list[Any] = []

    class Recording(Server):
        async def create_dry_run(self, kind: Kind, key: Key, body: Body, of: type[T]) -> T | Failure:
            asked.append(body["spec"])
            return await super().create_dry_run(kind, key, body, of)

    own = msgspec.structs.replace(REQUEST, resources=(("cpu", "64"),))
    found = asyncio.run(_run(dry_run_with(Recording(containers("64"))), own))
    assert isinstance(found, Shape)
    (spec,) = asked
    assert spec["initContainers"] == []
    assert [each["resources"]["requests"] for each in spec["containers"]] == [{"cpu": "64"}]
    kept = dry_run_result(own, REFUSAL, NOW)
    assert kept.is_about(cron_job(generation=1), (("cpu", "64"),))
    assert not kept.is_about(cron_job(generation=1), ())


async def _run(run: DryRun, request: DryRunRequest) -> Shape | Failure:
    return await run(request)
