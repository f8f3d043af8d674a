"""`foresail restore create --from-protection`: the request, what is refused before, and what is told afterwards."""

import json
from pathlib import Path
from typing import Any

import pytest

from foresail.cli.main import main
from foresail.cli.protection.get import described
from tests.unit.cli.canned import canned
from tests.unit.cli.test_protection import NOW, SHOP

POINT = "gold-1-a"
RESTORES = "/apis/oadp.openshift.io/v1alpha1/namespaces/shop/nonadminrestores"
PROTECTION = "/apis/foresail.dev/v1alpha1/namespaces/shop/protections/protection"


def create(tmp_path: Path, *words: str, **answers: Any) -> int:  # noqa: ANN401 - JSON
    made = {f"POST {RESTORES}": {"metadata": {"name": "back", "namespace": "shop"}}, PROTECTION: SHOP, **answers}
    with canned(tmp_path, made) as server:
        return main(["restore", "create", "back", "-n", "shop", *words, "--kubeconfig", str(server.kubeconfig)])


def test_a_manifest_names_the_point_and_no_backup(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["restore", "create", "back", "--from-protection", POINT, "-n", "shop", "-o", "json"]) == 0
    spec = json.loads(capsys.readouterr().out)["spec"]
    assert spec == {"restoreSpec": {}, "fromProtection": {"backup": POINT}}


def test_a_restore_without_a_name_is_named_after_the_point(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["restore", "create", "--from-protection", POINT, "-n", "shop", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["metadata"]["name"].startswith(f"{POINT}-20")


@pytest.mark.parametrize("words", [["--from-backup", "b"], ["--only", "configmap/a"], ["--to", "staging"]])
def test_what_a_point_cannot_be_combined_with(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(["restore", "create", "back", "--from-protection", POINT, "-n", "shop", *words, "-o", "json"])
    except SystemExit as ended:  # argparse itself refuses two sources
        code = int(str(ended.code))
    assert code == 2
    assert "--from-protection" in capsys.readouterr().err


def test_what_the_protection_does_not_list_is_refused_with_what_it_lists(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert create(tmp_path, "--from-protection", "gold-1-b") == 1
    said = capsys.readouterr().err
    assert "gold-1-b is no point in time" in said
    assert f"restore from one of {POINT}" in said


def test_a_description_says_how_to_restore_the_newest_point() -> None:
    text = "\n".join(described(SHOP, NOW))
    assert f"foresail restore create --from-protection {POINT} -n shop" in text
    closed = {**SHOP, "status": {**SHOP["status"], "points": []}}
    assert "--from-protection" not in "\n".join(described(closed, NOW))
