"""The doctor finds objects of ours for which no operator has the capability switched on."""

from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_RESTORE, NON_ADMIN_SCHEDULE
from foresail.api.policy import SELF_SERVICE_POLICY
from foresail.api.primer import PRIMER
from foresail.cli.access.cluster import on_cluster
from foresail.cli.doctor.evidence import gather
from foresail.plan import Kind
from tests.unit.cli.canned import canned
from tests.unit.cli.test_doctor import HEALTHY, OPERATOR, wrong


def test_objects_of_kinds_that_nobody_serves_are_a_problem() -> None:
    only_schedules = replace(OPERATOR, self_service=False)
    counts = {NON_ADMIN_BACKUP: 2, NON_ADMIN_RESTORE: 0, NON_ADMIN_SCHEDULE: 1, SELF_SERVICE_POLICY: 4, PRIMER: 3}
    bare = replace(HEALTHY, operators=(only_schedules,), primers_lease=None, unserved=counts)
    found = [each for each in wrong(bare) if each.about == "kinds"]
    assert [(each.says, each.fix) for each in found] == [
        (
            (
                "no operator serves 2 NonAdminBackups, 1 NonAdminSchedule and 4 SelfServicePolicies: --self-service is"
                " off, so they have no effect"
            ),
            "foresail install --self-service; or delete them",
        ),
        (
            "no operator serves 3 Primers: --primers is off, so they have no effect",
            "foresail install --primers; or delete them",
        ),
    ]
    assert [each for each in wrong(replace(bare, unserved=dict.fromkeys(counts, 0))) if each.about == "kinds"] == []
    assert [each for each in wrong(replace(bare, operators=())) if "no operator serves" in each.says] == []


@pytest.mark.parametrize(
    ("arguments", "others", "counted"),
    [
        ([], [], {NON_ADMIN_BACKUP: 5, PRIMER: 1}),
        (["--self-service=true"], [], {PRIMER: 1}),
        (["--self-service", "--primers"], [], {}),
        ([], ["oadp-non-admin-controller"], {PRIMER: 1}),
    ],
)
def test_kinds_without_an_operator_are_found_by_the_deployments(
    arguments: list[str], others: list[str], counted: dict[Kind, int], tmp_path: Path
) -> None:
    def deployment(name: str, labels: dict[str, str]) -> dict[str, Any]:
        pod = {"spec": {"containers": [{"name": "a", "image": "a", "args": arguments}]}}
        return {"metadata": {"name": name, "namespace": "velero", "labels": labels}, "spec": {"template": pod}}

    deployments = [
        deployment("a", {"app.kubernetes.io/name": "foresail-schedules"}),
        *(deployment(n, {}) for n in others),
    ]
    definitions = [
        {"metadata": {"name": name}, "spec": {}}
        for name in ("nonadminbackups.oadp.openshift.io", "primers.foresail.dev")
    ]
    answers = {
        "/version": {},
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": {"metadata": {}, "items": definitions},
        "/apis/apps/v1/deployments": {"metadata": {}, "items": deployments},
        "/apis/oadp.openshift.io/v1alpha1/nonadminbackups": {
            "metadata": {"remainingItemCount": 4},
            "items": [{"metadata": {"name": "first", "namespace": "red"}}],
        },
        "/apis/foresail.dev/v1alpha1/primers": {"metadata": {}, "items": [{"metadata": {"name": "daily"}}]},
    }
    with canned(tmp_path, answers) as server:
        args = Namespace(kubeconfig=str(server.kubeconfig), context=None)
        seen = on_cluster(args, lambda cluster: gather(cluster, "velero", None))
    assert seen.unserved == counted
