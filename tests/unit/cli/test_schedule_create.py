"""What `foresail schedule create` makes of its options; that Velero makes the same is tested on a cluster."""

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from foresail.cli.errors import CommandError
from foresail.cli.main import main, parser
from foresail.cli.options.selectors import read_selector, shown_selector
from foresail.cli.output.words import go_duration, shown_duration
from foresail.cli.schedule.create import checked, schedule_object
from foresail.cron import Dialect
from foresail.schedules.observe import VeleroServer
from tests.unit.cli.made_up import NOW

GOCRON, ROBFIG, UNKNOWN = VeleroServer(Dialect.GOCRON), VeleroServer(Dialect.ROBFIG), VeleroServer(None)


def parsed(*words: str) -> argparse.Namespace:
    return parser().parse_args(["schedule", *words])


def made(*words: str) -> dict[str, Any]:
    return schedule_object(parsed("create", "daily", "--schedule", "0 3 * * *", *words))


def test_a_schedule_without_options_backs_up_everything_and_leaves_the_rest_to_velero() -> None:
    assert made() == {
        "apiVersion": "velero.io/v1",
        "kind": "Schedule",
        "metadata": {"name": "daily", "namespace": "velero"},
        "spec": {
            "schedule": "0 3 * * *",
            "useOwnerReferencesInBackup": False,
            "template": {
                "hooks": {},
                "metadata": {},
                "includedNamespaces": ["*"],
                "ttl": "0s",
                "csiSnapshotTimeout": "0s",
                "itemOperationTimeout": "0s",
            },
        },
    }


def test_a_manifest_needs_no_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    words = ["schedule", "create", "daily", "-n", "backups"]
    assert main([*words, "--schedule", "0 3 * * *", "--storage-location", "moon", "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["metadata"] == {"name": "daily", "namespace": "backups"}
    assert main([*words, "--schedule", "0 3 * * *", "--dry-run"]) == 0
    assert "schedule: 0 3 * * *" in capsys.readouterr().out
    assert main([*words, "--schedule", "0 3 * *", "-o", "yaml"]) == 1
    assert "there are 4 fields instead of five" in capsys.readouterr().err
    assert main([*words, "--schedule", "0 3 13 * 5", "-o", "yaml"]) == 0
    said = capsys.readouterr()
    assert "0 3 13 * 5" in said.out
    assert said.err.startswith("hint: '0 3 13 * 5' has different meanings for Velero up to 1.18.2 and from 1.18.3")
    assert main([*words, "--schedule", "0 3 13 * 5", "-o", "yaml", "--velero-dialect", "go-cron"]) == 0
    assert capsys.readouterr().err == ""
    assert main([*words, "--schedule", "0 3 * * *"]) != 0


def test_lists_are_given_with_commas_or_again() -> None:
    template = made("--include-namespaces", "a,b", "--include-namespaces", "c")["spec"]["template"]
    assert template["includedNamespaces"] == ["a", "b", "c"]


def test_labels_and_annotations_stand_on_the_schedule_from_which_backups_get_them() -> None:
    metadata = made("--labels", "a=b,c=d", "--annotations", "owner=team x")["metadata"]
    assert metadata["labels"] == {"a": "b", "c": "d"}
    assert metadata["annotations"] == {"owner": "team x"}


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        (["--snapshot-volumes"], "snapshotVolumes", True),
        (["--snapshot-volumes=false"], "snapshotVolumes", False),
        (["--snapshot-volumes", "false"], "snapshotVolumes", False),
        (["--ttl", "1h30m"], "ttl", "1h30m0s"),
        (["--or-selector", "a=b or c in (d)"], "orLabelSelectors", [read_selector("a=b"), read_selector("c in (d)")]),
        (["--ordered-resources", "pods=n/a,n/b;pvc=n/c"], "orderedResources", {"pods": "n/a,n/b", "pvc": "n/c"}),
        (["--parallel-files-upload", "4"], "uploaderConfig", {"parallelFilesUpload": 4}),
        (["--resource-policies-configmap", "p"], "resourcePolicy", {"kind": "configmap", "name": "p"}),
        (["--data-mover", "mine"], "datamover", "mine"),
        (["--storage-location", "far"], "storageLocation", "far"),
        (["--volume-snapshot-locations", "a,b"], "volumeSnapshotLocations", ["a", "b"]),
    ],
)
def test_an_option_of_velero_fills_its_field(words: list[str], field: str, value: object) -> None:
    assert made(*words)["spec"]["template"][field] == value


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--ttl", "3 days"], "--ttl: '3 days' is not a duration"),
        (["--labels", "a"], "--labels: 'a' has no name and value"),
        (["--selector", "a=b", "--or-selector", "c=d"], "--selector and --or-selector cannot be combined"),
        (["--include-resources", "a", "--exclude-cluster-scoped-resources", "b"], "cannot be combined"),
        (["--include-namespaces", "a,b", "--exclude-namespaces", "b"], "both included and excluded: b"),
        (["--ordered-resources", "pods"], "'pods' is not a kind with names"),
        (["--selector", "a=b=c"], "'a=b=c' in the selector"),
    ],
)
def test_options_that_make_no_sense_are_refused_with_a_hint(words: list[str], problem: str) -> None:
    with pytest.raises(CommandError) as refused:
        made(*words)
    assert problem in refused.value.problem
    assert refused.value.hint


def test_a_name_that_no_backup_can_carry_in_its_label_is_refused() -> None:
    with pytest.raises(CommandError, match="64 characters"):
        schedule_object(parsed("create", "x" * 64, "--schedule", "@daily"))


def test_a_bare_yes_or_no_option_leaves_the_name_behind_it_alone() -> None:
    words = parsed("unpause", "--skip-immediately", "daily")
    assert (words.names, words.skip_immediately) == (["daily"], True)
    words = parsed("unpause", "daily", "--skip-immediately=false")
    assert (words.names, words.skip_immediately) == (["daily"], False)
    assert parsed("unpause", "daily").skip_immediately is None


def test_a_yes_or_no_option_takes_nothing_but_yes_or_no(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("unpause", "daily", "--skip-immediately=maybe")
    assert "'maybe' is neither true nor false" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "server", "problem"),
    [
        ("0 3 * *", GOCRON, "there are 4 fields instead of five"),
        ("0 0 30 2 *", GOCRON, "never fires"),
        ("@manual", GOCRON, "never fires"),
        ("0 0 13 1 5", GOCRON, "has no fire in the next five years"),
        ("0 */24 * * *", GOCRON, "hour"),
        ("0 3 1 * 1", UNKNOWN, "the version of this Velero is unknown"),
    ],
)
def test_an_expression_that_would_not_run_is_not_sent(text: str, server: VeleroServer, problem: str) -> None:
    with pytest.raises(CommandError) as refused:
        checked(text, server, "UTC", NOW)
    assert problem in str(refused.value)
    assert refused.value.hint


def test_an_expression_is_read_by_the_rules_of_the_velero_that_runs() -> None:
    assert checked("0 */24 * * *", ROBFIG, "UTC", NOW).next(NOW) is not None
    assert checked("0 0 13 1 5", ROBFIG, "UTC", NOW).next(NOW) is not None
    assert checked("0 3 * * *", UNKNOWN, "UTC", NOW).next(NOW) is not None


@pytest.mark.parametrize(
    ("text", "selector", "shown"),
    [
        ("a=b", {"matchLabels": {"a": "b"}}, "a=b"),
        ("z==1,a=b", {"matchLabels": {"z": "1", "a": "b"}}, "a=b,z=1"),
        ("a in (y,x)", {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x", "y"]}]}, "a in (x,y)"),
        ("a notin (x)", {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["x"]}]}, "a notin (x)"),
        ("a!=x", {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["x"]}]}, "a notin (x)"),
        ("a", {"matchExpressions": [{"key": "a", "operator": "Exists"}]}, "a"),
        ("!a", {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, "!a"),
        ("", {}, "<none>"),
    ],
)
def test_a_selector_is_read_and_shown(text: str, selector: dict[str, Any], shown: str) -> None:
    assert read_selector(text) == selector
    assert shown_selector(selector) == shown


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (0, "0s"),
        (72 * 3600 * 10**9, "72h0m0s"),
        (90 * 10**9, "1m30s"),
        (1_500_000_000, "1.5s"),
        (1_500_000, "1.5ms"),
        (1_500, "1.5µs"),
        (7, "7ns"),
        (-(10**9), "-1s"),
    ],
)
def test_a_duration_is_written_as_go_writes_it(length: int, text: str) -> None:
    assert go_duration(length) == text


def test_a_duration_of_an_object_is_shown_whatever_its_value() -> None:
    assert [shown_duration(each) for each in (None, "", "720h", "soon")] == ["0s", "0s", "720h0m0s", "soon"]
