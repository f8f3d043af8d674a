import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from foresail.api.specs import BackupSpec, StoredBackupSpec
from foresail.cli.coverage.metrics import metrics
from foresail.cli.coverage.show import coverage_table, document
from foresail.proof.coverage import NamespaceCoverage, judge
from foresail.proof.reasons import Reason
from foresail.proof.view import BackupRow, ClaimRow, CoverageView, NamespaceRow, ScheduleRow
from foresail.scope.discovery import STANDARD_KINDS, Discovery, ResourceKind
from foresail.scope.releases import Release
from foresail.scope.server import ServerFlags
from foresail.scope.volumes import Method
from tests.machine_speed import slowness

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
OLD = NOW - timedelta(days=400)


def spec(**fields: Any) -> BackupSpec:  # noqa: ANN401  as JSON has it
    return msgspec.convert(fields, BackupSpec)


def namespaces(*names: str) -> tuple[NamespaceRow, ...]:
    return tuple(NamespaceRow(each, OLD) for each in names)


def claim(namespace: str, name: str = "data") -> ClaimRow:
    body = {"metadata": {"name": name}, "spec": {"volumeName": "pv"}, "status": {"phase": "Bound"}}
    return ClaimRow(namespace, name, body, {"spec": {"capacity": {"storage": "1Gi"}}})


def schedule(name: str, *, paused: bool = False, **fields: Any) -> ScheduleRow:  # noqa: ANN401  as JSON has it
    return ScheduleRow("Schedule", "velero", name, spec(**fields), paused, NOW + timedelta(hours=1))


def run(of: ScheduleRow, hours: float, phase: str = "Completed", items: int | None = 100) -> BackupRow:
    return BackupRow(f"{of.name}-{hours:g}", phase, of.spec, NOW - timedelta(hours=hours), items, of.title)


def judged(view: CoverageView) -> dict[str, NamespaceCoverage]:
    return {each.name: each for each in judge(view, NOW)}


def reasons(of: NamespaceCoverage) -> list[Reason]:
    """Return the reasons but that there is no backup yet: most of these worlds have none."""
    return [each.reason for each in of.all_gaps() if each.reason is not Reason.NO_GOOD_BACKUP]


def test_eighteen_namespaces_with_volumes_that_no_schedule_covers_are_found() -> None:
    names = [f"team-{number:02}" for number in range(40)]
    nightly = schedule("nightly", includedNamespaces=names[:22])
    found = judge(
        CoverageView(namespaces(*names), tuple(map(claim, names)), (nightly,), (run(nightly, 5),)),
        NOW,
    )
    bare = [each.name for each in found if reasons(each) == [Reason.NO_SCHEDULE]]
    assert bare == names[22:]
    assert all(not each.all_gaps() and each.claims[0].schedules == ("nightly",) for each in found[:22])


def test_eleven_partial_runs_over_absent_namespaces_with_empty_archives_are_found() -> None:
    nightly = schedule("nightly", includedNamespaces=["shop", "gone"])
    runs = tuple(run(nightly, 24 * day, "PartiallyFailed", 0) for day in range(11))
    found = judged(CoverageView(namespaces("shop"), (), (nightly,), runs, timedelta(hours=26)))
    assert reasons(found["shop"]) == [Reason.PARTIAL_RUNS, Reason.EMPTY, Reason.OBJECTIVE_MISSED]
    assert "the last 11 of 11 runs" in found["shop"].gaps[0].message
    assert reasons(found["gone"]) == [Reason.NAMESPACE_ABSENT]
    assert found["shop"].newest_good is None


@pytest.mark.parametrize(
    "selection",
    [{"labelSelector": {}}, {"orLabelSelectors": [{}]}, {"orLabelSelectors": [{"matchLabels": {"app": "shop"}}, {}]}],
)
def test_a_selector_with_which_velero_cannot_list_covers_nothing(selection: dict[str, Any]) -> None:
    nightly = schedule("nightly", includedNamespaces=["shop"], **selection)
    shop = judged(CoverageView(namespaces("shop"), (), (nightly,), (run(nightly, 5),), timedelta(hours=26)))["shop"]
    assert shop.newest_good is None
    assert Reason.NO_SCHEDULE in reasons(shop)


def test_what_a_restore_could_use_is_told_from_what_only_exists() -> None:
    nightly = schedule("nightly", includedNamespaces=["shop"])
    runs = (run(nightly, 50), run(nightly, 26), run(nightly, 2, items=9))
    found = judged(CoverageView(namespaces("shop"), (), (nightly,), runs, timedelta(hours=24)))["shop"]
    assert found.newest_good == runs[1]
    assert reasons(found) == [Reason.SHRUNK, Reason.OBJECTIVE_MISSED]


def test_the_strictest_objective_of_the_covering_schedules_counts_unless_one_is_given() -> None:
    daily = replace(schedule("daily"), objective=timedelta(hours=26))
    hourly = replace(schedule("hourly", includedNamespaces=["shop"]), objective=timedelta(hours=2))
    view = CoverageView(namespaces("shop", "bank"), (), (daily, hourly), (run(daily, 5),))
    found = judged(view)
    assert reasons(found["shop"]) == [Reason.OBJECTIVE_MISSED]
    assert found["shop"].objective == timedelta(hours=2)
    assert reasons(found["bank"]) == []
    assert judged(replace(view, objective=timedelta(hours=6)))["shop"].all_gaps() == []


def test_a_resource_policy_that_velero_refuses_protects_nothing() -> None:
    bad = replace(schedule("nightly"), policy_problem="ConfigMap rules does not exist")
    found = judged(CoverageView(namespaces("shop"), (), (bad,)))["shop"]
    assert reasons(found) == [Reason.REFUSED]
    assert found.gaps[0].message.endswith("nightly: its resource policy: ConfigMap rules does not exist")


def test_a_schedule_that_cannot_run_protects_nothing() -> None:
    broken = replace(schedule("nightly"), not_running="'0 3 31 2 *' never fires")
    healthy = schedule("daily")
    both = judged(CoverageView(namespaces("shop"), (), (broken, healthy)))["shop"]
    assert (both.schedules, both.covered_by) == (("nightly", "daily"), ("daily",))
    found = judged(CoverageView(namespaces("shop"), (), (broken,)))["shop"]
    assert found.covered_by == ("nightly",), "the gap says why it protects nothing"
    assert reasons(found) == [Reason.NOT_RUNNING]
    assert found.gaps[0].message == "nightly does not run: '0 3 31 2 *' never fires"
    assert reasons(judged(CoverageView(namespaces("shop"), (), (broken, healthy)))["shop"]) == []
    paused = replace(broken, paused=True)
    assert reasons(judged(CoverageView(namespaces("shop"), (), (paused,)))["shop"]) == [Reason.PAUSED]


def test_a_pattern_covers_nothing_with_velero_1_17() -> None:
    view = CoverageView(namespaces("shop"), (), (schedule("nightly", includedNamespaces=["sh*"]),))
    assert reasons(judged(view)["shop"]) == []
    assert reasons(judged(replace(view, release=Release.V1_17))["shop"]) == [Reason.NO_SCHEDULE]


def test_a_claim_of_an_opted_in_pod_that_the_template_leaves_out_is_a_gap() -> None:
    opted_in = {
        "metadata": {"name": "db", "annotations": {"backup.velero.io/backup-volumes": "v"}},
        "spec": {
            "nodeName": "worker",
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
            "containers": [{"volumeMounts": [{"name": "v"}]}],
        },
        "status": {"phase": "Running"},
    }
    row = replace(claim("shop"), pods=(opted_in,))
    saved = judged(CoverageView(namespaces("shop"), (row,), (schedule("nightly"),)))["shop"]
    assert saved.claims[0].method == Method.FILE_SYSTEM
    without_pods = schedule("nightly", excludedResources=["pods"])
    assert reasons(judged(CoverageView(namespaces("shop"), (row,), (without_pods,)))["shop"]) == [
        Reason.VOLUME_LEFT_OUT
    ]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, Method.FILE_SYSTEM),
        ({"defaultVolumesToFsBackup": False}, Method.SNAPSHOT),
        ({"defaultVolumesToRestic": False}, Method.FILE_SYSTEM),
    ],
)
def test_the_servers_default_for_file_system_backup_counts_where_the_template_has_none(
    fields: dict[str, Any], expected: Method
) -> None:
    mounting = {
        "metadata": {"name": "db"},
        "spec": {
            "nodeName": "worker",
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
            "containers": [{"volumeMounts": [{"name": "v"}]}],
        },
        "status": {"phase": "Running"},
    }
    row, nightly = replace(claim("shop"), pods=(mounting,)), schedule("nightly", **fields)
    view = CoverageView(namespaces("shop"), (row,), (nightly,), server=ServerFlags(default_volumes_to_fs_backup=True))
    assert judged(view)["shop"].claims[0].method == expected


def test_without_the_csi_feature_a_csi_volume_needs_the_volume_in_the_backup() -> None:
    by_csi = replace(claim("shop"), volume={"spec": {"csi": {"driver": "disk.example"}}})
    nightly = schedule("nightly", includeClusterResources=False)
    view = CoverageView(namespaces("shop"), (by_csi,), (nightly,), server=ServerFlags(has_csi=False))
    assert reasons(judged(view)["shop"]) == [Reason.VOLUME_LEFT_OUT]


OBJECTS = {"snapshotVolumes": False}
DAY = timedelta(hours=26)


def test_a_healthy_schedule_without_data_does_not_hide_that_the_one_with_data_is_paused() -> None:
    objects, data = schedule("objects", **OBJECTS), schedule("data", paused=True)
    backups = (run(objects, 1), run(data, 2000))
    found = judged(CoverageView(namespaces("shop"), (claim("shop"),), (objects, data), backups, DAY))["shop"]
    assert (found.gaps, found.newest_good) == ((), backups[0])
    assert [each.reason for each in found.claims[0].gaps] == [Reason.PAUSED, Reason.OBJECTIVE_MISSED]
    assert found.claims[0].newest_good == backups[1]
    assert not found.claims[0].is_saved


def test_a_healthy_schedule_without_data_does_not_hide_eleven_partial_runs_with_data() -> None:
    objects, data = schedule("objects", **OBJECTS), schedule("data")
    failed = [run(data, 24 * day + 1, "PartiallyFailed") for day in range(11)]
    view = CoverageView(namespaces("shop"), (claim("shop"),), (objects, data), (run(objects, 1), *failed), DAY)
    found = judged(view)["shop"]
    assert [each.reason for each in found.claims[0].gaps] == [Reason.PARTIAL_RUNS, Reason.OBJECTIVE_MISSED]
    assert found.claims[0].gaps[1].message == "no good backup has the data of claim data"
    assert "the last 11 of 11 runs of data" in found.claims[0].gaps[0].message


def test_a_gap_of_all_schedules_is_reported_once() -> None:
    data = schedule("data", paused=True)
    view = CoverageView(namespaces("shop"), (claim("shop"),), (data,), (run(data, 2000),), DAY)
    found = judged(view)["shop"]
    assert reasons(found) == [Reason.PAUSED, Reason.OBJECTIVE_MISSED]
    assert found.claims[0].is_saved is False, "though it has no gap of its own"


def test_the_data_of_a_claim_has_the_objective_of_the_schedules_that_save_it() -> None:
    objects = replace(schedule("objects", **OBJECTS), objective=timedelta(hours=2))
    data = replace(schedule("data"), objective=timedelta(days=8))
    backups = (run(objects, 1), run(data, 150))
    found = judged(CoverageView(namespaces("shop"), (claim("shop"),), (objects, data), backups))["shop"]
    assert reasons(found) == []
    assert (found.claims[0].objective, found.claims[0].newest_good) == (data.objective, backups[1])
    late = judged(CoverageView(namespaces("shop"), (claim("shop"),), (objects, data), backups, DAY))["shop"]
    assert [each.reason for each in late.claims[0].gaps] == [Reason.OBJECTIVE_MISSED]
    assert "data-150, is older than the objective" in late.claims[0].gaps[0].message


def test_a_claim_younger_than_the_objective_cannot_have_missed_it() -> None:
    nightly = schedule("nightly")
    young = replace(claim("shop"), created=NOW - timedelta(hours=3))
    found = judged(CoverageView(namespaces("shop"), (young,), (nightly,), (run(nightly, 5),), DAY))["shop"]
    assert reasons(found) == []
    assert found.claims[0].newest_good is None, "it is older than the claim"
    old = replace(young, created=NOW - timedelta(hours=30))
    late = judged(CoverageView(namespaces("shop"), (old,), (nightly,), (run(nightly, 31), run(nightly, 5)), DAY))
    assert reasons(late["shop"]) == []


SECRETS: list[dict[str, Any]] = [
    {"includedResources": ["secrets"]},
    {"includedNamespaceScopedResources": ["secrets"]},
    {"labelSelector": {"matchLabels": {"app": "other"}}},
    {"orLabelSelectors": [{"matchLabels": {"app": "other"}}]},
]


@pytest.mark.parametrize("filters", SECRETS)
def test_a_backup_of_some_objects_is_no_backup_of_the_namespace(filters: dict[str, Any]) -> None:
    nightly = schedule("nightly")
    some = replace(run(schedule("by-hand", **filters), 1), schedule="")
    view = CoverageView(namespaces("shop"), (), (nightly,), (run(nightly, 200), some), DAY)
    found = judged(view)["shop"]
    assert found.newest_good == view.backups[0]
    assert reasons(found) == [Reason.OBJECTIVE_MISSED]


@pytest.mark.parametrize("filters", SECRETS)
def test_a_schedule_of_some_objects_does_not_hide_that_the_one_of_all_fails(filters: dict[str, Any]) -> None:
    some = replace(schedule("some", **filters), objective=timedelta(hours=2), next_run=NOW)
    every = replace(schedule("every", excludedResources=["events"]), objective=timedelta(hours=26))
    backups = (run(some, 1), run(every, 30), run(every, 4, "PartiallyFailed"))
    found = judged(CoverageView(namespaces("shop"), (), (some, every), backups))["shop"]
    assert reasons(found) == [Reason.PARTIAL_RUNS, Reason.OBJECTIVE_MISSED]
    assert (found.schedules, found.next_run) == (("some", "every"), every.next_run)
    assert found.objective == every.objective


@pytest.mark.parametrize("filters", SECRETS)
def test_where_only_some_objects_are_wanted_a_backup_of_those_counts(filters: dict[str, Any]) -> None:
    some = schedule("some", includedNamespaces=["shop"], **filters)
    made = replace(run(some, 1), spec=spec(**filters, excludedResources=["volumesnapshots"]))
    other = replace(run(schedule("by-hand", includedResources=["pods"]), 0.5), schedule="")
    found = judged(CoverageView(namespaces("shop"), (), (some,), (made, other), DAY))["shop"]
    assert (found.newest_good, reasons(found)) == (made, [])


def test_a_tenants_backup_in_their_own_bucket_does_not_stand_for_that_of_the_administrator() -> None:
    nightly = schedule("nightly")
    own = replace(run(schedule("own"), 1), schedule="", is_in_tenants_bucket=True)
    view = CoverageView(namespaces("shop"), (claim("shop"),), (nightly,), (run(nightly, 200), own), DAY)
    found = judged(view)["shop"]
    assert (found.newest_good, found.claims[0].newest_good) == (view.backups[0], view.backups[0])
    assert reasons(found) == [Reason.OBJECTIVE_MISSED]


def test_where_only_the_tenant_has_a_schedule_their_own_bucket_counts() -> None:
    own = replace(schedule("own"), is_in_tenants_bucket=True)
    made = replace(run(own, 1), is_in_tenants_bucket=True)
    found = judged(CoverageView(namespaces("shop"), (claim("shop"),), (own,), (made,), DAY))["shop"]
    assert (found.newest_good, found.claims[0].newest_good, reasons(found)) == (made, made, [])
    nightly = schedule("nightly", paused=True)
    both = judged(CoverageView(namespaces("shop"), (), (own, nightly), (made,), DAY))["shop"]
    assert reasons(both) == [Reason.PAUSED, Reason.OBJECTIVE_MISSED]


def test_a_schedule_whose_resource_policy_cannot_be_read_saves_no_claim() -> None:
    nightly = replace(schedule("nightly"), policy_unread="ConfigMap rules cannot be read")
    found = judged(CoverageView(namespaces("shop"), (claim("shop"),), (nightly,), (run(nightly, 1),), DAY))["shop"]
    assert reasons(found) == [Reason.POLICY_UNREAD]
    assert found.claims[0].gaps[0].message.endswith("is unknown: ConfigMap rules cannot be read")


def test_a_backup_with_a_resource_policy_that_was_not_read_saves_no_claim() -> None:
    nightly = schedule("nightly")
    by_hand = replace(run(schedule("x", resourcePolicy={"kind": "configmap", "name": "skip"}), 1), schedule="")
    view = CoverageView(namespaces("shop"), (claim("shop"),), (nightly,), (run(nightly, 20), by_hand), DAY)
    found = judged(view)["shop"]
    assert (found.newest_good, found.claims[0].newest_good) == (view.backups[0], view.backups[0])


def test_a_run_whose_resource_policy_has_another_name_now_is_still_a_run() -> None:
    policy = {"kind": "configmap", "name": "rules-def"}
    nightly = schedule("nightly", resourcePolicy=policy)
    made = replace(run(nightly, 3), spec=spec(resourcePolicy={**policy, "name": "rules-abc"}))
    found = judged(CoverageView(namespaces("shop"), (claim("shop"),), (nightly,), (made,), DAY))["shop"]
    assert (found.newest_good, found.claims[0].newest_good, reasons(found)) == (made, made, [])


def test_an_edit_of_the_filters_does_not_lose_the_runs_before_it() -> None:
    nightly = schedule("nightly", includedResources=["pods", "secrets"])
    made = replace(run(nightly, 3), spec=spec(includedResources=["pods"]))
    assert reasons(judged(CoverageView(namespaces("shop"), (), (nightly,), (made,), DAY))["shop"]) == []


def test_a_tenants_bucket_does_not_hide_that_the_administrators_schedule_with_data_fails() -> None:
    objects, data = schedule("objects", **OBJECTS), schedule("data")
    mine = replace(schedule("mine", includedNamespaces=["shop"]), is_in_tenants_bucket=True)
    backups = (
        run(objects, 1),
        run(data, 150),
        run(data, 2, "PartiallyFailed"),
        replace(run(mine, 1), is_in_tenants_bucket=True),
    )
    view = CoverageView(namespaces("shop"), (claim("shop"),), (objects, data, mine), backups, DAY)
    found = judged(view)["shop"].claims[0]
    assert [each.reason for each in found.gaps] == [Reason.PARTIAL_RUNS, Reason.OBJECTIVE_MISSED]
    assert (found.newest_good, found.is_saved) == (backups[1], False)


@pytest.mark.parametrize("is_in_tenants_bucket", [True, False])
def test_a_tenants_schedule_does_not_hide_that_an_administrators_part_fails(is_in_tenants_bucket: bool) -> None:
    nightly = schedule("nightly", includedResources=["pods", "secrets", "pvc"])
    mine = schedule("mine", includedNamespaces=["shop"], labelSelector={"matchLabels": {"a": "b"}})
    mine = replace(mine, is_in_tenants_bucket=is_in_tenants_bucket)
    own = replace(run(mine, 1), is_in_tenants_bucket=is_in_tenants_bucket)
    backups = (run(nightly, 200), run(nightly, 2, "Failed"), own)
    found = judged(CoverageView(namespaces("shop"), (), (nightly, mine), backups, DAY))["shop"]
    assert reasons(found) == [Reason.PARTIAL_RUNS, Reason.OBJECTIVE_MISSED]
    assert found.newest_good == backups[0]


def test_a_run_in_a_bucket_that_is_gone_or_a_tenants_is_no_run_of_an_administrators_schedule() -> None:
    nightly = schedule("nightly")
    gone = replace(run(nightly, 1), is_in_tenants_bucket=True)
    view = CoverageView(namespaces("shop"), (claim("shop"),), (nightly,), (run(nightly, 200), gone), DAY)
    found = judged(view)["shop"]
    assert (found.newest_good, reasons(found)) == (view.backups[0], [Reason.OBJECTIVE_MISSED])


def test_a_run_of_some_objects_is_none_of_a_template_that_takes_all_now() -> None:
    nightly = schedule("nightly")
    narrow = replace(run(nightly, 3), spec=spec(includedResources=["configmaps"]))
    found = judged(CoverageView(namespaces("shop"), (), (nightly,), (narrow,), DAY))["shop"]
    assert [each.message for each in found.gaps] == ["namespace shop has no good backup by nightly"]


def test_each_part_has_its_own_objective() -> None:
    hourly = replace(schedule("hourly", includedResources=["configmaps"]), objective=timedelta(hours=2))
    weekly = replace(schedule("weekly", includedResources=["secrets"]), objective=timedelta(days=8))
    view = CoverageView(namespaces("shop"), (), (hourly, weekly), (run(hourly, 1), run(weekly, 30)))
    assert reasons(judged(view)["shop"]) == []
    late = judged(replace(view, backups=(run(hourly, 3), run(weekly, 30))))["shop"]
    assert (late.newest_good, late.objective) == (run(hourly, 3), hourly.objective)
    assert [(each.reason, each.schedule) for each in late.gaps] == [(Reason.OBJECTIVE_MISSED, "hourly")]


def test_the_gap_of_a_late_part_names_its_own_schedule() -> None:
    db, web = (schedule(name, labelSelector={"matchLabels": {"app": name}}) for name in ("db", "web"))
    found = judged(CoverageView(namespaces("shop"), (), (db, web), (run(db, 1), run(web, 90)), DAY))["shop"]
    assert [each.schedule for each in found.gaps] == ["web"]


@pytest.mark.parametrize(
    "excluded",
    [["nodes", "storageclasses.storage.k8s.io"], ["pv"], ["customresourcedefinitions"], ["Events", "event"], ["vs"]],
)
def test_kinds_without_a_namespace_and_events_may_be_left_out(excluded: list[str]) -> None:
    daily, weekly = schedule("daily", excludedResources=excluded), schedule("weekly")
    view = CoverageView(namespaces("shop"), (), (daily, weekly), (run(daily, 1), run(weekly, 100)), DAY)
    assert reasons(judged(view)["shop"]) == []


def test_a_better_backup_counts_for_a_tenants_part() -> None:
    mine = replace(schedule("mine", includedResources=["configmaps"]), is_in_tenants_bucket=True)
    by_hand = replace(run(schedule("x", includedResources=["configmaps"]), 1), schedule="")
    own = replace(run(schedule("y"), 2), schedule="", is_in_tenants_bucket=True)
    for each in (by_hand, own):
        assert reasons(judged(CoverageView(namespaces("shop"), (), (mine,), (each,), DAY))["shop"]) == []


@pytest.mark.timed
def test_many_parts_of_many_namespaces_take_less_than_five_seconds() -> None:
    names = [f"team-{number:04}" for number in range(5000)]
    parts = [schedule(f"s{number}", labelSelector={"matchLabels": {"n": str(number)}}) for number in range(50)]
    backups = tuple(run(each, 1 + day) for each in parts for day in range(20))
    view = CoverageView(namespaces(*names), (), tuple(parts), backups, DAY)
    began = time.process_time()
    assert all(not reasons(each) for each in judge(view, NOW))
    assert time.process_time() - began <= 5 * slowness()


def test_a_part_without_a_backup_is_named_by_its_schedule() -> None:
    web, db = (schedule(name, labelSelector={"matchLabels": {"app": name}}) for name in ("web", "db"))
    found = judged(CoverageView(namespaces("shop"), (), (web, db), (run(web, 1),), DAY))["shop"]
    assert [each.message for each in found.gaps] == ["namespace shop has no good backup by db"]
    assert found.gaps[0].schedule == "db"


def test_a_schedule_that_excludes_most_kinds_does_not_stand_for_one_of_all() -> None:
    nightly = schedule("nightly", excludedResources=["events"])
    mine = schedule("mine", excludedResources=["secrets", "deployments.apps", "pvc", "pods"])
    backups = (run(nightly, 200), run(nightly, 2, "Failed"), run(mine, 1))
    found = judged(CoverageView(namespaces("shop"), (), (mine, nightly), backups, DAY))["shop"]
    assert reasons(found) == [Reason.PARTIAL_RUNS, Reason.OBJECTIVE_MISSED]
    assert found.gaps[1].schedule == "nightly", "so that its run closes the gap"
    assert reasons(judged(CoverageView(namespaces("shop"), (), (mine,), (run(mine, 1),), DAY))["shop"]) == []


def test_specs_of_tenants_and_of_velero_choose_the_same() -> None:
    fields: dict[str, Any] = {"labelSelector": {"matchLabels": {"app": "web"}}, "includedNamespaces": ["shop"]}
    mine = schedule("mine", **fields)
    made = replace(run(mine, 3), spec=msgspec.convert(fields, StoredBackupSpec), schedule="")
    assert reasons(judged(CoverageView(namespaces("shop"), (), (mine,), (made,), DAY))["shop"]) == []


def test_the_objective_of_a_paused_schedule_counts_only_without_another() -> None:
    hourly = replace(schedule("hourly", paused=True), objective=timedelta(hours=2))
    nightly = replace(schedule("nightly"), objective=DAY)
    found = judged(CoverageView(namespaces("shop"), (claim("shop"),), (hourly, nightly), (run(nightly, 9),)))["shop"]
    assert (found.objective, found.claims[0].objective, reasons(found)) == (DAY, DAY, [])


@pytest.mark.parametrize(
    "unwanted",
    [
        replace(claim("shop"), volume=None),
        replace(claim("shop"), body={"metadata": {"labels": {"velero.io/exclude-from-backup": "true"}}}),
    ],
    ids=["without a volume", "excluded by its label"],
)
def test_a_claim_without_data_to_save_is_no_gap(unwanted: ClaimRow) -> None:
    without = schedule("objects", **OBJECTS)
    found = judged(CoverageView(namespaces("shop"), (unwanted,), (without,), (run(without, 1),), DAY))["shop"]
    assert (reasons(found), found.claims[0].is_wanted) == ([], False)
    assert 'foresail_namespace_claims{namespace="shop"} 0' in metrics([found], NOW)


def test_a_late_claim_in_a_young_namespace_is_in_the_figures() -> None:
    weekly = replace(schedule("weekly", **OBJECTS), objective=timedelta(days=8))
    data = replace(schedule("data"), objective=timedelta(hours=2))
    rows = (NamespaceRow("shop", NOW - timedelta(hours=48)),)
    view = CoverageView(rows, (claim("shop"),), (weekly, data), (run(weekly, 20), run(data, 20)))
    (found,) = judge(view, NOW)
    assert reasons(found) == [Reason.OBJECTIVE_MISSED]
    assert 'foresail_namespace_objective_seconds{namespace="shop"} 7200' in metrics([found], NOW)


@pytest.mark.timed
def test_many_different_backups_of_one_tenant_take_less_than_five_seconds() -> None:
    nightly = schedule("nightly")
    claims = tuple(claim("shop", f"data-{number}") for number in range(500))
    own = tuple(
        replace(run(schedule("own", labelSelector={"matchLabels": {"n": str(number)}}), 1 + number / 60), schedule="")
        for number in range(1000)
    )
    view = CoverageView(namespaces("shop"), claims, (nightly,), (run(nightly, 20), *own), DAY)
    began = time.process_time()
    (found,) = judge(view, NOW)
    assert time.process_time() - began <= 5 * slowness()
    assert (found.newest_good, reasons(found)) == (view.backups[0], [])


@pytest.mark.parametrize("hours", [2, 25.9])
def test_a_young_good_backup_meets_the_objective(hours: float) -> None:
    nightly = schedule("nightly")
    found = judged(CoverageView(namespaces("shop"), (), (nightly,), (run(nightly, hours),), timedelta(hours=26)))
    assert found["shop"].all_gaps() == []


def test_a_paused_schedule_is_a_gap_only_without_another_that_runs() -> None:
    paused, other = schedule("paused", paused=True), schedule("other")
    alone = judged(CoverageView(namespaces("shop"), (), (paused,)))["shop"]
    assert reasons(alone) == [Reason.PAUSED]
    assert alone.next_run is None
    assert reasons(judged(CoverageView(namespaces("shop"), (), (paused, other)))["shop"]) == []


def test_a_backup_from_before_a_namespace_existed_is_not_its_backup() -> None:
    nightly = schedule("nightly")
    rows = (NamespaceRow("young", NOW - timedelta(hours=30)),)
    found = judged(CoverageView(rows, (), (nightly,), (run(nightly, 40),), timedelta(hours=26)))["young"]
    assert found.newest_good is None
    assert reasons(found) == [Reason.OBJECTIVE_MISSED]


def test_a_namespace_younger_than_the_objective_has_no_gap_yet() -> None:
    rows = (NamespaceRow("young", NOW - timedelta(hours=3)),)
    found = judged(CoverageView(rows, (), (schedule("nightly"),), (), timedelta(hours=26)))["young"]
    assert reasons(found) == []
    assert "foresail_namespace_objective_seconds{" not in metrics([found], NOW), "so that no alert compares it"


@pytest.mark.parametrize(
    "fields",
    [
        {"snapshotVolumes": False},
        {"excludedResources": ["pvc"]},
        {"labelSelector": {"matchLabels": {"app": "web"}}},
        {"orLabelSelectors": [{"matchLabels": {"app": "web"}}]},
    ],
)
def test_a_claim_whose_data_no_schedule_saves_is_a_gap(fields: dict[str, Any]) -> None:
    found = judged(CoverageView(namespaces("shop"), (claim("shop"),), (schedule("nightly", **fields),)))["shop"]
    assert reasons(found) == [Reason.VOLUME_LEFT_OUT]


KINDS = Discovery(
    (
        *STANDARD_KINDS.kinds,
        ResourceKind("apps", "deployments", "Deployment", namespaced=True, short_names=("deploy",)),
        ResourceKind("rbac.authorization.k8s.io", "clusterroles", "ClusterRole", namespaced=False),
    )
)


@pytest.mark.parametrize(
    ("fields", "is_covered"),
    [
        ({"includedResources": ["clusterroles", "nothing"]}, False),
        ({"includedResources": ["namespaces"]}, False),
        ({"includedResources": ["clusterroles", "deploy"]}, True),
        ({"includedNamespaceScopedResources": ["nothing"]}, False),
        ({"excludedNamespaceScopedResources": ["*"]}, False),
        ({"includedClusterScopedResources": ["clusterroles"]}, True),
    ],
)
def test_a_template_without_kinds_of_namespaces_covers_no_namespace(fields: dict[str, Any], is_covered: bool) -> None:
    nightly = schedule("nightly", **fields)
    found = judged(CoverageView(namespaces("shop"), (), (nightly,), (run(nightly, 5),), kinds=KINDS))["shop"]
    assert reasons(found) == ([] if is_covered else [Reason.NO_SCHEDULE])
    assert (found.newest_good is not None) == is_covered


def test_without_the_kinds_of_the_cluster_a_named_kind_may_be_in_namespaces() -> None:
    nightly = schedule("nightly", includedResources=["clusterroles"])
    assert reasons(judged(CoverageView(namespaces("shop"), (), (nightly,)))["shop"]) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"includeClusterResources": False},
        {"includedResources": ["pods", "pvc"]},
        {"excludedResources": ["pv"]},
        {"excludedClusterScopedResources": ["persistentvolumes"]},
    ],
)
def test_a_template_without_persistent_volumes_makes_no_native_snapshot(fields: dict[str, Any]) -> None:
    nightly = schedule("nightly", includedNamespaces=["shop"], **fields)
    found = judged(CoverageView(namespaces("shop"), (claim("shop"),), (nightly,)))["shop"]
    assert reasons(found) == [Reason.VOLUME_LEFT_OUT]
    assert found.claims[0].gaps[0].message.endswith("nightly: the backup leaves out its PersistentVolume")
    by_csi = replace(claim("shop"), volume={"spec": {"csi": {"driver": "disk.example"}}})
    assert reasons(judged(CoverageView(namespaces("shop"), (by_csi,), (nightly,)))["shop"]) == []


def test_a_volume_with_the_exclusion_label_is_not_snapshotted() -> None:
    volume = {"metadata": {"name": "pv", "labels": {"velero.io/exclude-from-backup": "true"}}, "spec": {"cinder": {}}}
    labelled = replace(claim("shop"), volume=volume)
    found = judged(CoverageView(namespaces("shop"), (labelled,), (schedule("nightly"),)))["shop"]
    assert reasons(found) == [Reason.VOLUME_LEFT_OUT]


def test_a_schedule_that_velero_refuses_protects_nothing() -> None:
    bad = schedule("bad", includedNamespaces=["shop", "*"])
    assert reasons(judged(CoverageView(namespaces("shop"), (), (bad,)))["shop"]) == [Reason.REFUSED]


def test_the_exclusion_label_says_that_no_backup_is_wanted() -> None:
    row = NamespaceRow("scratch", OLD, {"velero.io/exclude-from-backup": "true"})
    found = judged(CoverageView((row,), (), (), (), timedelta(hours=1)))["scratch"]
    assert (found.is_excluded, found.all_gaps()) == (True, [])


@pytest.mark.parametrize(
    ("name", "label", "is_left_out"),
    [
        ("foresail-check-0123456789-abcdef", "foresail.dev/restore-check", True),
        ("foresail-check-0123456789-abcdef", "team", False),
        ("shop", "foresail.dev/restore-check", False),
    ],
)
def test_a_sandbox_of_a_restore_check_needs_no_backup(name: str, label: str, is_left_out: bool) -> None:
    row = NamespaceRow(name, OLD, {label: "a"})
    found = judged(CoverageView((row,), (), (), (), timedelta(hours=1)))[name]
    assert (found.is_excluded, not found.all_gaps()) == (is_left_out, is_left_out)


@pytest.mark.timed
def test_five_thousand_namespaces_and_five_hundred_schedules_take_less_than_five_seconds() -> None:
    names = [f"team-{number % 100:02}-{number:04}" for number in range(5000)]
    schedules = [schedule(f"all-{number}", excludedNamespaces=[f"team-{number:02}-*"]) for number in range(50)]
    schedules += [schedule(f"team-{number}", includedNamespaces=[f"team-{number % 100:02}-*"]) for number in range(200)]
    schedules += [schedule(f"one-{number}", includedNamespaces=[names[number]]) for number in range(250)]
    backups = tuple(run(each, 24 * day + 1) for each in schedules for day in range(14))
    view = CoverageView(namespaces(*names), tuple(map(claim, names)), tuple(schedules), backups, timedelta(hours=26))
    began = time.process_time()
    found = judge(view, NOW)
    seconds = time.process_time() - began
    print(f"judged in {seconds:.2f} s")
    assert len(found) == 5000
    assert seconds <= 5 * slowness()


def test_namespaces_are_read_once_however_many_specs_there_are() -> None:
    class Counted(dict[str, str]):
        reads = 0

        def get(self, *of: Any) -> Any:  # noqa: ANN401  as a dict has it
            Counted.reads += 1
            return super().get(*of)

    rows = tuple(NamespaceRow(f"team-{number:02}", OLD, Counted()) for number in range(50))
    specs = [schedule(each.name, includedNamespaces=[each.name]) for each in rows]
    found = judge(CoverageView(rows, (), (), tuple(run(each, 5) for each in specs)), NOW)
    assert all(each.newest_good for each in found)
    assert Counted.reads <= 3 * len(rows)  # and not once per spec


def test_the_figures_report_the_claim_that_misses_its_objective() -> None:
    objects, data = schedule("objects", **OBJECTS), schedule("data")
    view = CoverageView(namespaces("shop"), (claim("shop"),), (objects, data), (run(objects, 1), run(data, 50)), DAY)
    text = metrics(judge(view, NOW), NOW)
    started = (NOW - timedelta(hours=50)).timestamp()
    assert f'foresail_namespace_good_backup_timestamp_seconds{{namespace="shop"}} {started:.0f}' in text
    assert 'foresail_namespace_objective_seconds{namespace="shop"} 93600' in text
    assert 'foresail_namespace_claims_saved{namespace="shop"} 0' in text


def snapshotted(of: ScheduleRow, hours: float, *, has_snapshots: bool = True, left_out: Any = frozenset()) -> BackupRow:  # noqa: ANN401
    return replace(run(of, hours), has_snapshots=has_snapshots, left_out=left_out)


def test_a_completed_backup_without_a_snapshot_has_no_data_of_a_volume() -> None:
    nightly = schedule("nightly", includedNamespaces=["shop"], snapshotMoveData=True)
    runs = (snapshotted(nightly, 30), snapshotted(nightly, 6, has_snapshots=False))
    view = CoverageView(namespaces("shop"), (claim("shop"),), (nightly,), runs, timedelta(hours=26))
    found = judged(view)["shop"]
    assert found.newest_good == runs[1], "its objects are there"
    (data,) = found.claims
    assert data.newest_good == runs[0], "the older one has the data"
    assert [each.reason for each in data.gaps] == [Reason.VOLUME_LEFT_OUT, Reason.OBJECTIVE_MISSED]
    assert data.gaps[0].message == (
        "the last run of nightly, nightly-6, has no snapshot of claim data, although Velero should have made one"
    )
    assert not data.is_saved
    without_objective = judged(replace(view, objective=None))["shop"].claims[0]
    assert [each.reason for each in without_objective.gaps] == [Reason.VOLUME_LEFT_OUT]


def test_file_system_backups_need_no_snapshot() -> None:
    nightly = schedule("nightly", includedNamespaces=["shop"], defaultVolumesToFsBackup=True)
    pod = {
        "metadata": {"name": "web"},
        "spec": {
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
            "containers": [{"volumeMounts": [{"name": "v"}]}],
            "nodeName": "worker",
        },
        "status": {"phase": "Running"},
    }
    mounted = replace(claim("shop"), pods=(pod,))
    rows = (snapshotted(nightly, 6, has_snapshots=False),)
    found = judged(CoverageView(namespaces("shop"), (mounted,), (nightly,), rows, timedelta(hours=26)))["shop"]
    assert found.claims[0].method is Method.FILE_SYSTEM
    assert (found.claims[0].newest_good, found.all_gaps()) == (rows[0], [])


@pytest.mark.parametrize(
    ("left_out", "lacking"),
    [(frozenset({"logs"}), ["logs"]), (None, ["data", "logs"]), (frozenset(), [])],
    ids=["named", "unnamed", "none"],
)
def test_volumes_that_a_tenants_backup_left_out_are_not_in_it(left_out: Any, lacking: list[str]) -> None:  # noqa: ANN401
    nightly = schedule("nightly", includedNamespaces=["shop"], snapshotMoveData=True)
    rows = (snapshotted(nightly, 6, left_out=left_out),)
    claims = (claim("shop"), claim("shop", "logs"))
    found = judged(CoverageView(namespaces("shop"), claims, (nightly,), rows))["shop"]
    assert [
        each.name for each in found.claims if Reason.VOLUME_LEFT_OUT in [gap.reason for gap in each.gaps]
    ] == lacking
    assert [each.name for each in found.claims if each.newest_good is None] == lacking
    assert list(found.left_out) == lacking
    shown = coverage_table([found], NOW, wide=False, width=None)
    assert (f", without the data of {', '.join(lacking)})" in shown) is bool(lacking)


def test_a_claim_that_is_younger_than_the_last_run_is_not_left_out() -> None:
    nightly = schedule("nightly", includedNamespaces=["shop"], snapshotMoveData=True)
    young = replace(claim("shop"), created=NOW - timedelta(hours=1))
    rows = (snapshotted(nightly, 6, has_snapshots=False),)
    found = judged(CoverageView(namespaces("shop"), (young,), (nightly,), rows))["shop"]
    assert reasons(found) == []
    assert found.left_out == ()
    assert "nightly-6 (6h ago, made before claim data existed)" in coverage_table([found], NOW, wide=False, width=None)
    assert document([found], None, NOW)["namespaces"][0]["newestGoodBackupBefore"] == ["data"]


def test_a_claim_names_the_good_backups_that_lack_its_data_and_those_from_before_it() -> None:
    objects, data = schedule("objects", **OBJECTS), schedule("data")
    bare = replace(run(data, 3), has_snapshots=False)
    backups = (run(objects, 1), run(objects, 30), bare, replace(run(data, 27), has_snapshots=False), run(data, 51))
    young = replace(claim("shop", "young"), created=NOW - timedelta(hours=20))
    found = judged(CoverageView(namespaces("shop"), (claim("shop"), young), (objects, data), backups, DAY))["shop"]

    def without(backup: BackupRow) -> tuple[tuple[str, ...], tuple[str, ...]]:
        assert backup.started is not None
        return found.without(backup.name, backup.started), found.younger_than(backup.started)

    assert [without(backup) for backup in backups] == [
        (("data", "young"), ()),
        (("data",), ("young",)),
        (("data", "young"), ()),
        (("data",), ("young",)),
        ((), ("young",)),
    ]
    assert found.left_out == ("data", "young")


def test_whether_a_backup_lacks_data_is_not_guessed() -> None:
    nightly = schedule("nightly")
    policy = {"kind": "configmap", "name": "gone"}
    unread = replace(run(schedule("by-hand", resourcePolicy=policy), 1), schedule="")
    found = judged(CoverageView(namespaces("shop"), (claim("shop"),), (nightly,), (run(nightly, 5), unread)))["shop"]
    assert found.without(unread.name, NOW) == ()
