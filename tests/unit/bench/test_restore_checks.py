"""The benchmark of restore checks counts what it must not miss: other errors, pods that ended, and leftovers."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import pytest

from bench import MeasurementError, restore_checks, restore_drill
from bench.restore_checks import Attack, accepted, attacks, is_good, measure, pods_created
from bench.restore_drill import CHARTS, Drill
from testbed import Cluster, TestbedError
from testbed.audit import Request

if TYPE_CHECKING:
    from tests.cluster.operators import Operator

SANDBOX = "foresail-check-0123456789-abcdef"
FENCE = "".join(
    (CHARTS / f"foresail/templates/{name}.yaml").read_text() for name in ("restore-checks-fence", "fence-checks")
)
REFUSED = "kubectl: code 1: Error from server (Forbidden): ValidatingAdmissionPolicy denied request: {}"


@dataclass
class FakeCluster:
    """Answers kubectl."""

    answers: dict[tuple[str, ...], str] = field(default_factory=dict)
    """The problems of commands; what is not here succeeds."""
    found: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)

    def kubectl(self, *words: str, text: str | None = None) -> str:
        problem = self.answers.get((*words, text or ""), "")
        if problem:
            raise TestbedError(problem, "")
        return ""

    def get(self, kind: str, *_: str) -> dict[str, Any]:
        return {"items": self.found.get(kind, [])}

    def audit_where(self, matches: Any) -> list[Request]:  # noqa: ANN401 - a function
        return [each for each in self.requests if matches(each)]


class FakeOperator:
    """Does nothing."""

    def start(self) -> None:
        pass

    def kill(self) -> None:
        pass


def drill(cluster: FakeCluster) -> Drill:
    return Drill(cast("Cluster", cluster))


def key(attack: Attack) -> tuple[str, ...]:
    return (*attack.words, attack.text or "")


def created(resource: str, namespace: str = SANDBOX, code: int = 201, query: str = "") -> Request:
    now = datetime(2026, 11, 17, tzinfo=UTC)
    uri = f"/api/v1/namespaces/{namespace}/{resource}{query}"
    return Request("kcm", "create", uri, resource, namespace, "", code, now, ended=True)


@pytest.mark.parametrize("name", attacks(SANDBOX))
def test_every_attack_expects_a_message_of_the_fence(name: str) -> None:
    assert attacks(SANDBOX)[name].message in FENCE


def test_an_attack_that_the_fence_refuses_is_not_reported() -> None:
    answers = {key(each): REFUSED.format(each.message) for each in attacks(SANDBOX).values()}
    assert list(accepted(drill(FakeCluster(answers)), SANDBOX)) == []


@pytest.mark.parametrize("problem", ["", 'code 1: Error from server (NotFound): deployments.apps "three" not found'])
def test_an_attack_that_succeeds_or_fails_for_another_reason_is_reported(problem: str) -> None:
    answers = {key(each): problem for each in attacks(SANDBOX).values()}
    found = list(accepted(drill(FakeCluster(answers)), SANDBOX))
    assert found == [f"{name}: {problem or 'accepted'}" for name in attacks(SANDBOX)]


def test_an_object_that_cannot_be_attacked_is_reported() -> None:
    answers = {key(each): REFUSED.format(each.message) for each in attacks(SANDBOX).values()}
    answers["get", "deployments", "three", f"--namespace={SANDBOX}", ""] = "not found"
    found = list(accepted(drill(FakeCluster(answers)), SANDBOX))
    assert found == ["there is no deployments/three to attack: not found"]


def test_a_refusal_needs_its_message() -> None:
    found = drill(FakeCluster({("create", ""): REFUSED.format("a sandbox takes no Ingresses")}))
    assert found.is_refused("no Ingresses", "create")
    assert not found.is_refused("suspended Jobs", "create")
    assert not found.is_refused("no Ingresses", "get")


def test_pods_in_sandboxes_count_even_if_they_have_ended() -> None:
    others = [
        created("resourcequotas"),
        created("pods", "shop"),
        created("pods", code=403),
        created("pods", query="?dryRun=All"),
    ]
    assert pods_created(drill(FakeCluster(requests=others)).created()) == 0
    assert pods_created(drill(FakeCluster(requests=[*others, created("pods")])).created()) == 1
    with pytest.raises(MeasurementError, match="says nothing about pods"):
        pods_created(drill(FakeCluster()).created())


def test_what_is_left_after_the_wait_is_in_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restore_drill, "_PATIENCE", 0.0)
    monkeypatch.setitem(restore_checks.PARTS, "faults", lambda *_: {"faults": 1, "found": 1})
    namespace = {"metadata": {"name": SANDBOX}}
    volume = {"metadata": {"name": "pvc-1"}, "spec": {"claimRef": {"namespace": SANDBOX, "name": "data"}}}
    others = {"metadata": {"name": "pvc-2"}, "spec": {"claimRef": {"namespace": "shop", "name": "data"}}}
    found: dict[str, list[dict[str, Any]]] = {"namespaces": [namespace], "persistentvolumes": [volume, others]}
    cluster = FakeCluster(found=found, requests=[created("resourcequotas")])
    figures = measure(drill(cluster), cast("Operator", FakeOperator()), 1, ["faults"])
    assert figures == {"faults": 1, "found": 1, "pods_started": 0, "leftovers": 2}
    assert not is_good(figures)


@pytest.mark.parametrize("bad", ["false_alarms", "escapes", "pods_started", "leftovers"])
def test_a_run_is_good_only_if_nothing_is_wrong(bad: str) -> None:
    good = {"faults": 2, "found": 2, "false_alarms": 0, "escapes": 0, "pods_started": 0, "leftovers": 0}
    assert is_good(good)
    assert not is_good({**good, bad: 1})
    assert not is_good({**good, "found": 1})
