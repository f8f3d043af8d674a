"""The verbs of `foresail primer` that list, change and delete objects, at an API server of canned answers."""

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from foresail.cli.main import main
from foresail.cli.primer.get import primer_table
from tests.unit.cli.canned import Canned, canned

NOW = datetime(2026, 1, 2, 2, tzinfo=UTC)
HERE = "/apis/foresail.dev/v1alpha1/namespaces/shop/primers"
EVERYWHERE = "/apis/foresail.dev/v1alpha1/primers"


def condition(kind: str, status: str, reason: str, message: str = "") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def primer(name: str, *conditions: dict[str, str], namespace: str = "shop", **status: Any) -> dict[str, Any]:  # noqa: ANN401
    delays = [{"fire": "2026-01-01T03:00:00Z", "seconds": 41, "warm": False}]
    delays += [{"fire": "2026-01-01T04:00:00Z", "seconds": 1, "warm": True}]
    cron = {"name": name, "dutyCyclePercent": 1, "startDelays": delays}
    known = {"nextFire": "2026-01-02T03:00:00Z", "nextWarmUp": "2026-01-02T02:50:00Z", "cronJobs": [cron]}
    said = conditions or (condition("Ready", "True", "Ready"),)
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {
        "metadata": metadata,
        "spec": {"warmUp": "10m", "cronJob": name},
        "status": {"warmUp": "10m", "matched": 1, "conditions": list(said), **known, **status},
    }


def cells(line: str) -> list[str]:
    return [each for each in (part.strip() for part in line.split("   ")) if each]


def test_get_shows_the_next_fire_and_cold_against_warm() -> None:
    shown = primer_table([primer("report")], NOW, wide=False, namespaced=True).splitlines()
    assert cells(shown[0]) == ["NAME", "WARM-UP", "NEXT FIRE", "COLD", "WARM", "STATUS"]
    assert cells(shown[1]) == ["report", "10m", "in 60m", "41s", "1s", "Ready"]


@pytest.mark.parametrize(
    ("conditions", "state"),
    [
        ((condition("Ready", "True", "Ready"), condition("Warming", "True", "Warming")), "Warming"),
        ((condition("Ready", "False", "NoCronJob"), condition("Warming", "False", "Waiting")), "NoCronJob"),
        ((condition("Ready", "False", "Refused"), condition("Warming", "True", "Warming")), "Refused"),
        ((condition("Exact", "True", "Instants"),), "NotSeenYet"),
    ],
)
def test_the_status_of_a_primer_is_one_word(conditions: tuple[dict[str, str], ...], state: str) -> None:
    shown = primer_table([primer("report", *conditions)], NOW, wide=False, namespaced=True).splitlines()
    assert cells(shown[1])[-1] == state


def test_the_default_table_fits_80_columns_and_wide_has_the_rest() -> None:
    blocked = condition("Ready", "False", "TooManyPlaceholders", "50 placeholders in this namespace leave no room.")
    found = [primer("a-name-of-20-letters", blocked), primer("b")]
    assert max(map(len, primer_table(found, NOW, wide=False, namespaced=True).splitlines())) <= 80
    short = primer_table([primer("a-name-of-20-letters")], NOW, wide=False, namespaced=False).splitlines()
    assert max(map(len, short)) <= 80
    assert cells(short[1])[:2] == ["shop", "a-name-of-20-letters"]
    wide = primer_table(found, NOW, wide=True, namespaced=True).splitlines()
    assert "   CRONJOBS   METHOD" in wide[0]
    assert wide[1].endswith("50 placeholders in this namespace leave no room.")
    assert "2026-01-02 02:50 UTC (in 50m)" in wide[1]


@pytest.mark.parametrize(
    ("asked", "used", "shown"),
    [(None, None, "Auto"), (None, "Placeholder", "Auto (Placeholder)"), ("CronJob", "CronJob", "CronJob")],
)
def test_wide_shows_the_method_and_what_auto_has_chosen(asked: str | None, used: str | None, shown: str) -> None:
    found = primer("report")
    found["spec"]["method"], found["status"]["cronJobs"][0]["method"] = asked, used
    (_, line) = primer_table([found], NOW, wide=True, namespaced=True).splitlines()
    assert shown in cells(line)


def test_a_narrow_terminal_shortens_names_and_nothing_else() -> None:
    found = [primer("a-name-that-is-longer-than-a-terminal-should-have-to-show")]
    shown = primer_table(found, NOW, wide=False, namespaced=False, width=72).splitlines()
    assert max(map(len, shown)) <= 72
    assert shown[1].endswith("Ready")
    assert "…" in shown[1]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Canned]:
    """An API server with the Primers a and b in shop, c in bank, and an annotated CronJob in shop."""
    a, b, c = primer("a"), primer("b"), primer("c", namespace="bank")
    plain = {"metadata": {"name": "plain", "namespace": "shop", "uid": "uid-plain"}, "spec": {}}
    marks = {"annotations": {"foresail.dev/warm-up": "10m"}}
    annotated = {"metadata": {"name": "nightly", "namespace": "shop", "uid": "uid-nightly", **marks}, "spec": {}}
    answers = {
        HERE: {"metadata": {}, "items": [b, a]},
        EVERYWHERE: {"metadata": {}, "items": [b, c, a]},
        f"{HERE}/a": a,
        f"{HERE}/b": b,
        "/apis/foresail.dev/v1alpha1/namespaces/bank/primers/c": c,
        "/apis/foresail.dev/v1alpha1/namespaces/empty/primers": {"metadata": {}, "items": []},
        "/apis/batch/v1/namespaces/empty/cronjobs": {"metadata": {}, "items": []},
        "/apis/batch/v1/namespaces/shop/cronjobs": {"metadata": {}, "items": [annotated, plain]},
        "/apis/batch/v1/namespaces/shop/cronjobs/nightly": annotated,
        "/apis/batch/v1/namespaces/shop/cronjobs/plain": plain,
        "/apis/batch/v1/cronjobs": {"metadata": {}, "items": []},
    }
    with canned(tmp_path, answers) as found:
        yield found


def run(server: Canned, *arguments: str, namespace: str = "shop") -> int:
    return main(["primer", *arguments, f"--kubeconfig={server.kubeconfig}", "-n", namespace])


def test_get_prints_every_form(server: Canned, capsys: pytest.CaptureFixture[str]) -> None:
    said = {}
    for form in ("table", "wide", "json", "yaml", "name"):
        assert run(server, "get", "-o", form) == 0
        said[form] = capsys.readouterr().out
    assert [each["metadata"]["name"] for each in json.loads(said["json"])["items"]] == ["a", "b", "nightly"]
    assert yaml.safe_load(said["yaml"]) == json.loads(said["json"])
    assert said["name"] == "primer.foresail.dev/a\nprimer.foresail.dev/b\ncronjob.batch/nightly\n"
    assert len(said["wide"].splitlines()[0]) > len(said["table"].splitlines()[0])


def test_get_prints_what_a_jsonpath_finds(server: Canned, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(server, "get", "a", "-o", "jsonpath={.status.nextFire}") == 0
    assert capsys.readouterr().out.strip() == "2026-01-02T03:00:00Z"


def test_labels_go_to_the_api_server_and_none_found_is_reported(
    server: Canned, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(server, "get", "-l", "tier=batch", namespace="empty") == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "No Primers found in namespace empty with labels tier=batch\n"
    assert server.queries[-1]["labelSelector"] == ["tier=batch"]


def test_an_annotated_cron_job_is_listed_among_the_primers_and_named_with_its_kind(
    server: Canned, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(server, "get") == 0
    assert [cells(line)[0] for line in capsys.readouterr().out.splitlines()] == ["NAME", "a", "b", "cronjob/nightly"]
    assert run(server, "get", "cronjob/nightly", "b") == 0
    assert [cells(line)[0] for line in capsys.readouterr().out.splitlines()] == ["NAME", "b", "cronjob/nightly"]
    assert run(server, "get", "cronjob/plain") == 1
    assert "CronJob shop/plain has no annotation foresail.dev/warm-up" in capsys.readouterr().err


def test_all_namespaces_are_listed_with_a_column_for_them(server: Canned, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(server, "get", "-A") == 0
    rows = [cells(line)[:2] for line in capsys.readouterr().out.splitlines()]
    assert rows == [["NAMESPACE", "NAME"], ["bank", "c"], ["shop", "a"], ["shop", "b"]]


@pytest.mark.parametrize("verb", ["get", "describe", "explain", "suspend", "resume", "delete"])
@pytest.mark.parametrize("also", ["-A", "--selector=tier=batch"])
def test_names_and_a_selection_together_are_refused(
    server: Canned, verb: str, also: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(server, verb, "a", also) == 2
    assert "Primer a: names cannot be combined with -l, -A or --all" in capsys.readouterr().err
    assert server.asked == []


@pytest.mark.parametrize("verb", ["suspend", "resume", "delete"])
def test_a_change_of_every_primer_must_be_asked_for(
    server: Canned, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(server, verb) == 2
    assert "hint: specify names, -l SELECTOR or --all" in capsys.readouterr().err
    assert server.asked == []


@pytest.mark.parametrize("verb", ["suspend", "resume", "delete"])
def test_an_annotated_cron_job_is_no_primer_to_change(
    server: Canned, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(server, verb, "cronjob/report") == 2
    assert "hint: remove it: kubectl annotate cronjob/report foresail.dev/warm-up-" in capsys.readouterr().err
    assert server.asked == []


@pytest.mark.parametrize(("verb", "done"), [("suspend", "suspended"), ("resume", "resumed")])
def test_selected_primers_are_suspended_and_resumed(
    server: Canned, verb: str, done: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(server, verb, "-A", "--all", "-o", "name") == 0
    said = capsys.readouterr()
    assert said.out.splitlines() == [f"primer.foresail.dev/{name}" for name in "cab"]
    assert f"Primer bank/c {done}" in said.err
    assert len(server.writes) == 3
    assert all(each.startswith("PATCH ") for each in server.writes)


def test_nothing_is_deleted_without_confirmation(
    server: Canned, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    assert run(server, "delete", "--all") == 2
    assert "Primer shop/a, Primer shop/b" in capsys.readouterr().err
    assert server.writes == []


@pytest.mark.parametrize("flag", ["--yes", "-y", "--confirm"])
def test_confirmed_primers_are_deleted(server: Canned, flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(server, "delete", "a", "b", flag, "-o", "name") == 0
    said = capsys.readouterr()
    assert said.out.splitlines() == ["primer.foresail.dev/a", "primer.foresail.dev/b"]
    assert "Primer shop/a deleted; its capacity is released" in said.err
    assert server.writes == [f"DELETE {HERE}/a", f"DELETE {HERE}/b"]


@pytest.mark.parametrize("flag", ["--dry-run", "--dry-run=client"])
def test_a_dry_run_prints_the_requests_and_sends_none(
    server: Canned, flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(server, "delete", flag, "a") == 0
    assert yaml.safe_load(capsys.readouterr().out) == [{"method": "DELETE", "path": f"{HERE}/a"}]
    assert server.writes == []
