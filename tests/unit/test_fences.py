"""The fences in the chart are those that the code describes, and the operator's own writes fit into them."""

import re
from pathlib import Path

import pytest

from foresail.api.fence import CREATE, Condition, Fence, Rule, only, rendered, same
from foresail.api.marks import FACTS, LEASES, SELF_SERVICE_LEASE
from foresail.api.specs import BackupSpec, RestoreSpec
from foresail.operator.fences import FENCES, files
from foresail.plan import Kind
from foresail.selfservice.specs.build import BACKUP_WRITTEN, RESTORE_WRITTEN

TEMPLATES = Path(__file__).parents[2] / "charts" / "foresail" / "templates"


def test_the_chart_has_the_fences_as_the_code_renders_them() -> None:
    for name, text in files().items():
        assert (TEMPLATES / name).read_text() == text, "run make fences"
    assert {path.name for path in TEMPLATES.glob("fence-*.yaml")} == files().keys()


def test_every_account_has_a_fence() -> None:
    assert [fence.name for fence in FENCES] == [*LEASES]


@pytest.mark.parametrize("fence", FENCES, ids=lambda fence: fence.name)
def test_no_line_of_a_fence_is_broken_inside_a_string(fence: Fence) -> None:
    for line in rendered(fence).splitlines():
        text = re.sub(r"\{\{.*?\}\}", "", line)
        if line.startswith("        ") and "{{" not in line:
            assert text.replace('\\"', "").count('"') % 2 == 0, line


def test_a_write_without_a_rule_is_refused() -> None:
    kind = Kind("example.com", "v1", "things", "Thing")
    fence = Fence("thief", "on", "Text.", (Rule(kind, CREATE, (Condition("true", "it is so"),)),), {})
    text = rendered(fence)
    assert '(variables.kind + "/" + request.operation) in ["things/CREATE"]' in text
    assert "operations: [CREATE, UPDATE, DELETE]" in text


def test_expressions_about_maps() -> None:
    assert only("m", ("a", "b")) == 'm.all(key, key in ["a", "b"])'
    assert same("m", "n") == "m == n"
    assert same("m", "n", ("a",)).startswith('m.all(key, key in ["a"] || m[?key] == n[?key]) && n.all(')


def test_the_fields_that_a_fence_admits_are_fields_of_velero() -> None:
    assert set(BACKUP_WRITTEN) <= set(BackupSpec.__struct_fields__)
    assert set(RESTORE_WRITTEN) <= set(RestoreSpec.__struct_fields__)
    never = {"included_cluster_scoped_resources", "include_cluster_resources", "excluded_namespaces"}
    assert not never & set(BACKUP_WRITTEN)
    assert not {"schedule_name", "restore_status"} & set(RESTORE_WRITTEN)


def test_the_lease_of_self_service_is_created_with_its_facts_and_no_other_lease_is() -> None:
    """Without that, no operator of self-service ever leads: its first Lease has them."""
    for fence in FENCES:
        (rule,) = (rule for rule in fence.rules if rule.kind.plural == "leases")
        allowed = [condition.expression for condition in rule.conditions if FACTS in condition.expression]
        assert len(allowed) == (fence.name == SELF_SERVICE_LEASE)
