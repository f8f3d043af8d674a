"""What a scrape of self-service costs the event loop, and that it shows no quota of the past."""

from collections import Counter

import msgspec
import pytest
from prometheus_client.core import GaugeMetricFamily

from foresail.api.policy import SelfServicePolicySpec
from foresail.kube.store import Store
from foresail.plan import Key
from foresail.selfservice.metrics import SelfServiceMetrics
from foresail.selfservice.policy.quota_ledger import QuotaLedger
from foresail.tenancy.namespaces import NamespaceRow
from foresail.tenancy.policies import PolicyRow

NAMESPACES = 50
FIRST = Key("", "team-0")


class Tenants:
    """Namespaces with one policy for all, and how often each was matched with it."""

    def __init__(self) -> None:
        self.namespaces, self.ledger, self.matched = Store[NamespaceRow](), QuotaLedger(), Counter[str]()
        self.stored = 20
        self.metrics = SelfServiceMetrics(self.namespaces, self.ledger, self._policy, lambda _: ())
        for number in range(NAMESPACES):
            self.namespaces.put(Key("", f"team-{number}"), NamespaceRow(f"uid-{number}", {}, is_terminating=False))

    def _policy(self, namespace: str) -> PolicyRow:
        self.matched[namespace] += 1
        spec = {"namespaceSelector": {}, "quotas": {"stored": self.stored, "active": 2}}
        return PolicyRow(Key("", "team"), msgspec.convert(spec, SelfServicePolicySpec))

    def quota(self, namespace: str) -> float:
        wanted = {"namespace": namespace, "which": "stored"}
        (found,) = (
            sample.value
            for family in self.metrics.collect()
            for sample in family.samples
            if sample.name == "foresail_selfservice_quota" and sample.labels == wanted
        )
        return found


def test_a_scrape_matches_no_namespace_with_the_policies_again() -> None:
    tenants = Tenants()
    for _ in range(3):
        assert tenants.quota("team-0") == 20
    assert set(tenants.matched.values()) == {1}
    assert len(tenants.matched) == NAMESPACES


def test_a_scrape_shows_the_quota_of_a_policy_that_has_changed() -> None:
    tenants = Tenants()
    tenants.quota("team-0")
    tenants.stored = 5
    tenants.metrics.policies_changed()
    assert tenants.quota("team-0") == 5


def test_a_scrape_matches_a_namespace_again_whose_labels_have_changed() -> None:
    tenants = Tenants()
    tenants.quota("team-0")
    tenants.stored = 5
    tenants.namespaces.put(FIRST, NamespaceRow("uid-0", {"team": "red"}, is_terminating=False))
    assert (tenants.quota("team-0"), tenants.quota("team-1")) == (5, 20)


def test_the_series_of_namespaces_are_made_outside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    tenants, made = Tenants(), 0
    add_metric = GaugeMetricFamily.add_metric

    def count(*given: object) -> None:
        nonlocal made
        made += 1
        add_metric(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(GaugeMetricFamily, "add_metric", count)
    parts = list(tenants.metrics.parts())  # what the event loop does; another thread does the rest
    assert made == 0
    assert sum(len(family.samples) for part in parts for family in part if "quota" in family.name) == 2 * NAMESPACES
