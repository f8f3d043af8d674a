"""The docs say what the code does: pages that are written from it are in step with it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from docs.generate import chart, measurements, metrics, modules, settings
from docs.generate.__main__ import FOLDER, files, main
from foresail.api import crds
from foresail.api.schema import schema
from foresail.api.specs import BackupSpec
from foresail.api.velero import ScheduleSpec
from tests.spec_paths import paths

WRITTEN = files()


def test_the_readme_of_the_chart_has_every_value_of_its_schema() -> None:
    text = chart.FILE.read_text()
    assert text == chart.readme(), "run `make docs`"
    schema = json.loads((chart.FILE.parent / "values.schema.json").read_text())
    missing = [name for name in schema["properties"] if f"| `{name}" not in text]
    assert missing == ["global"]


def keys(values: object, schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """Yield the path of each value of the chart that the schema does not know, and of each that only the schema has."""
    if not isinstance(values, dict) or "properties" not in schema:
        return
    names = set(schema["properties"]) - ({"global"} if not path else set())
    yield from (f"{path}{name}" for name in names ^ set(values))
    for name in names & set(values):
        yield from keys(values[name], schema["properties"][name], f"{path}{name}.")


def test_the_schema_of_the_chart_has_every_value_with_its_type_and_no_other() -> None:
    defaults = yaml.safe_load((chart.FILE.parent / "values.yaml").read_text())
    schema = json.loads((chart.FILE.parent / "values.schema.json").read_text())
    assert list(keys(defaults, schema)) == []
    assert list(keys({**defaults, "replica": 1}, schema)) == ["replica"]
    objects = [each for each in nested(schema) if "properties" in each]
    assert len(objects) > 10
    assert [each for each in objects if each.get("additionalProperties") is not False] == []
    untyped = [each for one in objects for each in one["properties"].values() if not {"type", "enum"} & set(each)]
    assert untyped == []


def nested(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a schema and those in it."""
    yield schema
    for each in schema.get("properties", {}).values():
        yield from nested(each)


def test_every_value_of_the_chart_has_a_meaning() -> None:
    assert [name for name, _, meaning in settings.values() if not meaning] == []


def test_artifact_hub_gets_every_kind_with_its_example() -> None:
    assert chart.KINDS.read_text() == chart.kinds_chart(), "run `make docs`"
    about = yaml.safe_load(chart.KINDS.read_text())["annotations"]
    kinds = [kind["kind"] for kind in yaml.safe_load(about["artifacthub.io/crds"])]
    assert kinds == [example["kind"] for example in yaml.safe_load(about["artifacthub.io/crdsExamples"])]
    assert set(kinds) == set(TYPES)


def test_the_generated_pages_are_what_the_code_would_write() -> None:
    assert {file.name: file.read_text() for file in FOLDER.iterdir()} == WRITTEN, "run `make docs`"


def test_the_table_of_measurements_is_what_each_name_stands_for() -> None:
    assert measurements.FILE.read_text() == measurements.page(), "run `make docs`"


def test_the_tables_of_modules_are_what_the_modules_say() -> None:
    text = modules.FILE.read_text()
    assert text == modules.page(), "run `make docs`"
    assert "| `requests/decide` | The flowchart: " in text


def test_writing_the_pages_takes_away_those_that_are_no_more(tmp_path: Path) -> None:
    (tmp_path / "gone.md").write_text("# Gone\n")
    main(tmp_path)
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == WRITTEN


def test_no_reason_is_without_its_meaning() -> None:
    rows = [line.strip("| ").split(" | ") for line in WRITTEN["reasons.md"].splitlines() if line.startswith("| <a id=")]
    assert len(rows) > 100
    assert [row[0] for row in rows if not row[1].strip()] == []


PAGE = Path(__file__).parents[2] / "docs" / "why-not.md"
LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")


def cells() -> list[list[str]]:
    """Return the rows of the comparison: a name, Foresail's cell, and those of the others."""
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return rows[1:]


def test_every_cell_about_foresail_leads_to_a_test_or_a_page() -> None:
    for name, ours, *_ in cells():
        targets = [PAGE.parent / link for link in LINK.findall(ours)]
        assert targets, f"{name}: no link"
        assert [each for each in targets if not each.exists()] == [], name


def test_what_is_said_about_others_is_their_own_word_or_a_test_of_ours() -> None:
    for name, _, others in cells():
        said = others.removesuffix(" |").split("<br>")
        assert [each for each in said if not re.fullmatch(r"\*\*[\w ]+\*\*: .*\]\(.*\).*", each)] == [], name


def test_each_advice_to_use_something_else_links_to_what_was_looked_up() -> None:
    advice = PAGE.read_text().partition("## Use something else if")[2].partition("##")[0]
    named = re.findall(r"^- \*\*(?!plain Velero).*", advice, re.MULTILINE)
    assert named
    assert [each for each in named if "](https://" not in each] == []


def test_the_metrics_that_the_fleet_reads_of_the_operator_exist() -> None:
    page = (PAGE.parent / "how-to" / "fleet.md").read_text()
    part = page.partition("\n## What the operator serves itself\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"\bforesail_\w+", part))
    assert named
    assert {name for name in named if f"| `{name}` |" not in WRITTEN["metrics.md"]} == set()


def test_the_readme_names_the_options_that_the_first_team_needs_and_they_exist() -> None:
    install = (PAGE.parents[1] / "README.md").read_text().partition("\n## Install\n")[2].partition("\n## ")[0]
    for option in ("--self-service", "--restore-checks", "--download-contents"):
        assert f"{option}`" in install or f"{option} " in install
        assert option in WRITTEN["commands.md"]


def test_the_first_commands_of_the_readme_are_about_every_namespace() -> None:
    """Alone, `coverage` is about the namespace of the kube context, in which there may be nothing."""
    for page in ("README.md", "docs/how-to/install.md"):
        lines = (PAGE.parents[1] / page).read_text().splitlines()
        assert [line for line in lines if line.startswith("$ ") and line.endswith("foresail coverage")] == []


def test_every_reason_in_the_troubleshooting_page_is_one() -> None:
    rows = [line for line in (PAGE.parent / "troubleshooting.md").read_text().splitlines() if line.startswith("| ")]
    named = {word for row in rows for word in re.findall(r"`([A-Z][A-Za-z]+)`", row.split(" | ")[0])}
    assert named
    assert {word for word in named if f"</a>`{word}` |" not in WRITTEN["reasons.md"]} == set()


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page by the rule of the site: lower case, words joined by hyphens, no other signs."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}


def test_the_runbook_of_every_alert_is_a_section_of_the_page_that_it_links_to() -> None:
    names = {rule["alert"].lower() for rule in metrics.alerts()}
    assert len(names) > 30
    assert names - anchors(PAGE.parent / "runbooks.md") == set()


NUMBER = re.compile(r"(\d[\d,]*(?:\.\d+)?)\s?(%|ms\b|s\b|min\b|kB\b|MiB\b)?")
MEASURED = re.compile(r"benchmarks\.md#([\w-]+)")


def figures(text: str) -> set[tuple[float, str]]:
    """Return the numbers of a text with their units."""
    return {(float(number.replace(",", "")), unit) for number, unit in NUMBER.findall(text)}


def measured(anchor: str) -> str:
    """Return a section of the benchmarks, with those below it."""
    text = (PAGE.parent / "contributing" / "benchmarks.md").read_text()
    for marks in ("##", "###"):
        for section in re.split(rf"^{marks} ", text, flags=re.MULTILINE)[1:]:
            title, _, body = section.partition("\n")
            if title.lower().replace(" ", "-") == anchor:
                return body
    raise AssertionError(f"the benchmarks have no section {anchor}")


@pytest.mark.parametrize("name", ["README.md", "docs/why-not.md", "docs/operations.md"])
def test_figures_are_those_that_were_measured_where_the_link_leads(name: str) -> None:
    rows = [line for line in (PAGE.parents[1] / name).read_text().splitlines() if line[:1] == "|"]
    cells = [(cell, row) for row in rows for cell in re.split(r" \| |<br>", row) if MEASURED.search(cell)]
    assert cells
    for cell, row in cells:
        said = re.sub(r"\([^)]*\)", "", row if name != "docs/why-not.md" else cell)  # other cells are of other pages
        found = figures(" ".join(measured(each) for each in MEASURED.findall(row)))
        assert figures(said) <= found, f"{row}: {figures(said) - found}"


def test_the_summary_of_the_benchmarks_has_the_figures_of_the_sections_that_it_names() -> None:
    sections = (PAGE.parent / "benchmarks.md").read_text().split("\n## ")[1:]
    assert sections
    for section in sections:
        found = figures(" ".join(measured(each) for each in MEASURED.findall(section)))
        rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")][1:]
        assert rows
        for what, figure, *_ in rows:
            assert figures(f"{what} {figure}") <= found, f"{what}: {figures(f'{what} {figure}') - found}"


@pytest.mark.parametrize("name", sorted(page.name for page in PAGE.parents[1].glob("*.md")))
def test_links_of_the_pages_outside_of_the_site_lead_somewhere(name: str) -> None:
    root = PAGE.parents[1]
    links = [link for link in LINK.findall((root / name).read_text()) if not link.startswith("https://")]
    assert [link for link in links if not (root / link).exists()] == []


SHOW_EVIDENCE = {
    "benchmarks.md",
    "index.md",  # its row for contributors
    "operations.md",  # figures, each with where it was measured
    "why-not.md",
}
"""Pages for users whose subject is evidence, or which send contributors on."""


def test_other_pages_for_users_name_no_test_and_do_not_lead_to_pages_for_contributors() -> None:
    pages = {str(page.relative_to(PAGE.parent)): page.read_text() for page in PAGE.parent.rglob("*.md")}
    for_users = {name for name in pages if not name.startswith("contributing/")} - SHOW_EVIDENCE
    assert len(for_users) > 30
    named = re.compile(r"\btests/[a-z]|\btest_[a-z]\w+|\]\((?:\.\./)*contributing/")
    assert {name: named.findall(pages[name]) for name in for_users if named.search(pages[name])} == {}


def test_every_finding_about_velero_has_the_release_that_ends_it() -> None:
    lines = (PAGE.parent / "contributing" / "velero-findings.md").read_text().splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    findings = [row for row in rows if row[0] != "what Velero does"]
    assert len(findings) > 25
    assert [row[0] for row in findings if not re.fullmatch(r"none known|1\.\d+(\.\d+)?", row[2])] == []


def test_every_test_that_the_velero_findings_name_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", (PAGE.parent / "contributing" / "velero-findings.md").read_text()))
    tests = "".join(file.read_text() for file in (PAGE.parents[1] / "tests").rglob("test_*.py"))
    assert named
    assert {name for name in named if f"def {name}(" not in tests} == set()


REQUIREMENTS = PAGE.parent / "contributing" / "design" / "requirements.md"


def test_every_path_of_the_requirements_exists() -> None:
    root = PAGE.parents[1]
    statements = REQUIREMENTS.read_text().partition("\n## Deviations")[0]
    rows = [line.strip("| ").split(" | ") for line in statements.splitlines() if line.startswith("| ")]
    cells = [cell for row in rows for cell in row[1:]]
    paths = [path for cell in cells for path in re.findall(r"`([^`]+)`", cell) if not path.startswith("make ")]
    bases = (root / "tests", root / "src" / "foresail")
    assert len(paths) > 40
    assert [path for path in paths if not any((base / path).exists() for base in bases)] == []


def test_every_design_document_of_the_requirements_has_its_title_and_its_address() -> None:
    documents = re.findall(
        r"^- \*\*(D\d)\*\* is .*\"(.+)\".*\(https://\S+\.md\)", REQUIREMENTS.read_text(), re.MULTILINE
    )
    assert documents == [
        ("D0", "Schedule Skip Immediately Config"),
        ("D1", "NonAdminBackup and NonAdminRestore Status Update"),
        ("D2", "Primed Cronjob Schedules"),
    ]


def test_the_table_of_the_default_policy_has_its_values() -> None:
    template = (chart.FILE.parent / "templates" / "self-service-policy.yaml").read_text()
    spec = yaml.safe_load("\n".join(line for line in template.splitlines() if "{{" not in line))["spec"]
    page = (PAGE.parent / "reference" / "self-service.md").read_text()
    table = page.partition("\n## The default policy\n")[2].partition("\n## ")[0]
    ttl, restores = spec["backup"]["ttl"], spec["quotas"]["restores"]
    assert f"priority {spec['priority']} " in table
    assert f"{spec['backup']['defaults']['ttl']} if the team names none; {ttl['minimum']} to {ttl['maximum']}" in table
    assert f"| {spec['quotas']['stored']} stored, {spec['quotas']['active']} active |" in table
    kept = f"the last {restores['history']} finished ones stay"
    assert f"| {restores['stored']} stored, {restores['active']} active; {kept} |" in table
    assert f"at most {spec['restore']['maximumObjects']} objects and {spec['restore']['maximumClaims']} claims" in table
    snapshot, moved = (spec["backup"][name]["maximum"] for name in ("csiSnapshotTimeout", "itemOperationTimeout"))
    assert f"{snapshot} for a snapshot, {moved} for moved data; {spec['backup']['parallelFiles']} files" in table
    assert spec["restore"]["allowed"] == {"existingResourcePolicies": ["update"]}
    assert set(spec) == {"namespaceSelector", "priority", "backup", "restore", "quotas"}, "name the new field there"


MANIFEST = re.compile(
    r"^```yaml\n(apiVersion: (?:foresail\.dev|oadp\.openshift\.io)/.*?)^```$", re.MULTILINE | re.DOTALL
)
TYPES = {each.kind.name: each.type for each in crds.DEFINITIONS}
EXAMPLES = sorted((PAGE.parents[1] / "examples" / "manifests").iterdir())
MANIFESTS = [
    *(
        (str(page.relative_to(PAGE.parent)), yaml.safe_load(text))
        for page in sorted(PAGE.parent.glob("*/*.md"))
        for text in MANIFEST.findall(page.read_text())
    ),
    *((file.name, yaml.safe_load(file.read_text())) for file in EXAMPLES if file.stem != "schedule"),
]


def test_every_kind_has_an_example_in_a_file_of_its_name() -> None:
    kinds = {file.stem: yaml.safe_load(file.read_text())["kind"] for file in EXAMPLES}
    assert kinds == {name.lower(): name for name in (*TYPES, "Schedule")}


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_an_example_begins_with_what_it_is_for_and_pages_of_users_link_to_it(file: Path) -> None:
    assert file.read_text().startswith("# ")
    pages = [page for folder in ("tutorial", "how-to", "concepts") for page in (PAGE.parent / folder).glob("*.md")]
    assert [page.name for page in pages if f"examples/manifests/{file.name})" in page.read_text()]


def test_the_example_of_a_schedule_has_only_fields_of_veleros() -> None:
    example = yaml.safe_load((EXAMPLES[0].parent / "schedule.yaml").read_text())
    assert set(example["spec"]) <= {*ScheduleSpec.__struct_encode_fields__}
    assert set(fields(example["spec"]["template"])) <= set(paths(schema(BackupSpec)))


@pytest.mark.parametrize(("page", "manifest"), MANIFESTS)
def test_a_manifest_on_a_page_has_only_fields_of_its_kind(page: str, manifest: dict[str, object]) -> None:
    kind = TYPES[str(manifest["kind"])]
    msgspec.convert(manifest, kind)
    known = paths(schema(kind))
    found = fields({part: manifest[part] for part in ("spec", "status") if part in manifest})
    unknown = [each for each in found if each not in known and f"{each.rpartition('.')[0]}{{}}" not in known]
    assert unknown == [], page


def fields(value: object, path: str = "") -> list[str]:
    """Return the path of every field of a manifest."""
    if isinstance(value, list):
        return [each for item in value for each in fields(item, f"{path}[]")]
    if not isinstance(value, dict):
        return []
    below = {f"{path}.{name}" if path else name: field for name, field in value.items()}
    return [found for deeper, field in below.items() for found in (deeper, *fields(field, deeper))]
