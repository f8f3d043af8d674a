"""The health checks for Argo CD, run by a Lua 5.1 as Argo CD runs them: with the object in `obj`."""

from typing import Any

import pytest
from lupa.lua51 import LuaRuntime

from foresail.selfservice.families import BACKUPS
from foresail.selfservice.requests.rules import waits
from tests.gitops.recorded import EXPECTED, FOLDER, HEALTH, health_checks, recorded


def judged(body: dict[str, Any]) -> dict[str, str]:
    """Return what the check says, without any library that could reach out: Argo CD loads none but these."""
    lua = LuaRuntime(register_eval=False)
    for name in ("os", "io", "require", "package", "debug", "python", "load", "loadstring", "dofile"):
        lua.globals()[name] = None
    group = body["apiVersion"].partition("/")[0]
    check = lua.execute(f"return function(obj) {health_checks()[group, body['kind']]} end")
    return dict(check(table(lua, body)).items())


def table(lua: LuaRuntime, value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return JSON as Lua has it: lists are tables that count from one."""
    match value:
        case dict():
            return lua.table_from({key: table(lua, each) for key, each in value.items()})
        case list():
            return lua.table_from([table(lua, each) for each in value])
        case _:
            return value


@pytest.mark.parametrize("name", EXPECTED)
def test_argo_cd_shows_each_recorded_object_as_it_is(name: str) -> None:
    said = judged(recorded(name))
    assert said["status"] == EXPECTED[name][0]
    assert said["message"]


def test_a_restore_without_a_policy_is_refused_for_good() -> None:
    backup = recorded("backup-without-policy")
    assert judged(backup)["status"] == "Progressing"
    assert judged({**backup, "kind": "NonAdminRestore"})["status"] == "Degraded"


def test_the_message_is_the_operators_own() -> None:
    assert judged(recorded("backup-refused"))["message"].startswith("NonAdminBackup spec.backupSpec.includedNamespaces")
    assert "never fires" in judged(recorded("schedule-invalid"))["message"]


def test_both_health_checks_know_every_reason_that_ends_by_itself() -> None:
    for file in ("argocd-cm.yaml", "flux-kustomization.yaml"):
        text = (HEALTH / file).read_text()
        assert [each.value for each in waits(BACKUPS) if each.value not in text] == [], file


def test_every_recorded_object_has_its_line_in_the_table() -> None:
    assert {file.stem for file in FOLDER.iterdir()} | {"primer-edited", "location-refused-while-pending"} == set(
        EXPECTED
    )
