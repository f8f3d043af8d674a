"""The whole chain with a real Prometheus: scrape, rules, and the labels of alerts."""

import asyncio
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from foresail.kube.clock import now
from foresail.kube.events import Events
from foresail.kube.execute import Executor
from foresail.kube.loop import Loop
from foresail.kube.metrics import Metrics, text
from foresail.operator.main import controllers
from foresail.operator.settings import Settings
from foresail.plan import Key
from foresail.proof.facts_watch import PublishedFacts
from tests.alerts.server import eventually, scraping, served
from tests.unit.kube.nowhere import nowhere
from tests.worlds.tenancy import Tenancy
from tests.worlds.test_selfservice_paths import tell

EVERYTHING = Settings("one", runs_self_service=True, runs_primers=True)


def of_all_capabilities(folder: Path) -> bytes:
    """Return the figures of a replica with all three capabilities that has read nothing yet."""

    async def render() -> bytes:
        async with nowhere(folder) as client:
            executor = Executor(client)
            chosen = controllers(EVERYTHING, client)
            loops = [Loop(client, each, executor, now) for each in chosen]
            others = [each.metrics for each in chosen if not isinstance(each, PublishedFacts)]
            metrics = Metrics(loops, executor, Events(client, "one", "one", now), lambda: True, others)
            return text(metrics.parts())

    return asyncio.run(render())


def of_two_tenants() -> bytes:
    """Return the figures of a replica with a failed backup in each of two namespaces."""
    found: list[bytes] = []

    async def story(tenancy: Tenancy) -> None:
        for namespace in ("red", "blue"):
            tenancy.back_up(Key(namespace, "shop"))
        await tenancy.settle()
        for namespace in ("red", "blue"):
            tenancy.velero_says(Key(namespace, "shop"), "Failed", failureReason="no")
        await tenancy.settle()
        process = tenancy.process
        assert process is not None
        metrics = process.loop.controller.metrics  # type: ignore[attr-defined]
        executor = Executor(process.visitor)
        events = Events(process.visitor, "one", "one", now)
        found.append(text(Metrics([process.loop], executor, events, lambda: True, [metrics]).parts()))

    tell(story)
    return found[0]


def test_no_series_is_there_twice_with_all_capabilities(tmp_path: Path) -> None:
    page = of_all_capabilities(tmp_path).decode()
    found = [
        (sample.name, *sorted(sample.labels.items()))
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    ]
    assert sorted(found) == sorted(set(found))


def test_prometheus_takes_a_scrape_of_all_capabilities_without_complaint(tmp_path: Path) -> None:
    page = of_all_capabilities(tmp_path)
    with served(lambda _: page) as port, scraping({"foresail-1": port}, tmp_path) as prometheus:
        eventually(lambda: bool(prometheus.targets()))
        (target,) = prometheus.targets()
        assert (target["health"], target["lastError"]) == ("up", "")
        eventually(lambda: bool(prometheus.series("foresail_store_objects")))
        pods = prometheus.series('foresail_store_objects{kind="Pod", controller="primers"}')
        assert len(pods) == 2
    assert "duplicate" not in (tmp_path / "prometheus.log").read_text()


def test_an_alert_about_a_tenant_names_the_tenants_namespace(tmp_path: Path) -> None:
    page = of_two_tenants()
    with served(lambda _: page) as port, scraping({"foresail-1": port}, tmp_path) as prometheus:
        eventually(lambda: len(prometheus.alerts("ForesailTenantRequestFailed")) > 1)
        alerts = prometheus.alerts("ForesailTenantRequestFailed")
        assert sorted(each["namespace"] for each in alerts) == ["blue", "red"]
        assert not any("exported_namespace" in each for each in alerts)
        assert prometheus.series("leader_election_master_status{name='foresail', namespace='velero', pod='foresail-1'}")
