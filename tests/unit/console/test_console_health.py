"""Whether Velero and Foresail run, as the header reports it: nothing is up without evidence."""

from datetime import UTC, datetime

import msgspec
import pytest

from foresail.api.apps import Deployment
from foresail.cli.coverage.facts import UNSEEN, SharedFacts
from foresail.cli.doctor.health import ABSENT, DOWN, UNKNOWN, UP
from foresail.cli.doctor.read_health import foresail_health, health_for_teams, velero_health
from foresail.cli.schedule.snapshot import Controllers
from foresail.console.layout import Site, Viewpoint, shell
from foresail.proof.facts import Facts
from foresail.safety.velero_pods import RUNS, VeleroState
from foresail.schedules.observe import VeleroServer
from tests.unit.console.test_report import Outline

OURS = {"metadata": {"name": "f", "namespace": "velero", "labels": {"app.kubernetes.io/name": "foresail-schedules"}}}


def controllers(
    operator: str = "", self_service: str = "", *, is_installed: bool = False, by_velero: bool = False
) -> Controllers:
    ours = {**OURS, "spec": {"template": {"spec": {"containers": []}}}}
    deployments = (msgspec.convert(ours, Deployment),) if is_installed else ()
    server = VeleroServer(None, "v1.18.3", has_schedule_controller=by_velero)
    return Controllers(server, operator, self_service, "UTC", deployments)


@pytest.mark.parametrize(
    ("state", "word", "detail"),
    [
        (RUNS, UP, "v1.18.3"),
        (VeleroState(problem="0 of 1 pods are ready"), DOWN, "0 of 1 pods are ready"),
        (VeleroState(unknown="whether a server runs"), UNKNOWN, "whether a server runs"),
    ],
)
def test_velero_is_up_only_if_nothing_speaks_against_it(state: VeleroState, word: str, detail: str) -> None:
    found = velero_health(state, controllers())
    assert (found.word, found.detail) == (word, detail)


@pytest.mark.parametrize(
    ("found", "word"),
    [
        (controllers(operator="foresail-0"), UP),
        (controllers(self_service="foresail-0", by_velero=True), UP),
        (controllers(self_service="foresail-0"), DOWN),  # nothing runs Schedules
        (controllers(is_installed=True), DOWN),
        (controllers(self_service="foresail-0", is_installed=True), DOWN),
        (controllers(), ABSENT),
    ],
)
def test_foresail_is_up_while_somebody_holds_a_lease(found: Controllers, word: str) -> None:
    assert foresail_health(found).word == word


@pytest.mark.parametrize(
    ("shared", "velero", "foresail"),
    [
        (SharedFacts(Facts()), UP, UP),
        (SharedFacts(Facts(velero_problem="down")), DOWN, UP),
        (SharedFacts(Facts(velero_unknown="x"), unknown=("x",)), UNKNOWN, UP),
        (SharedFacts(nobody_runs="nobody", unknown=(UNSEEN,)), UNKNOWN, DOWN),
        (SharedFacts(unknown=(UNSEEN,)), UNKNOWN, UNKNOWN),
    ],
)
def test_a_team_sees_what_the_operator_publishes(shared: SharedFacts, velero: str, foresail: str) -> None:
    found = health_for_teams(shared)
    assert (found.velero.word, found.foresail.word) == (velero, foresail)


def test_the_name_and_the_color_of_the_administrator_are_in_every_header() -> None:
    at = datetime(2026, 11, 19, 1, 6, 45, tzinfo=UTC)
    point = Viewpoint("admin@k8s", "10.0.0.1:6443", "ann", name="prod-eu1", color="orange", at=at)
    page = shell(Site("m", "c", "shop", is_administrator=False, viewpoint=point), "Calendar", "foresail doctor")
    texts = Outline(page).texts
    assert {"prod-eu1 (10.0.0.1:6443)", "ann", "01:06:45 UTC", "not live"} <= set(texts)
    assert '<header class="of-orange">' in page
    assert "<title>Calendar \u00b7 prod-eu1 \u00b7 Foresail</title>" in page
    strange = Viewpoint(color='red"><script>')
    assert "of-" not in shell(Site("m", "c", "shop", is_administrator=False, viewpoint=strange), "x", "y")
