"""kubectl's JSONPath templates, as `-o jsonpath=` prints them."""

from typing import Any

import pytest

from foresail.cli.errors import UsageError
from foresail.cli.main import main, parser
from foresail.cli.output.objects import as_text, jsonpath

ONE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Thing",
    "metadata": {"name": "a", "labels": {"example.com/team": "web"}, "managedFields": []},
    "spec": {"names": ["x", "y", "z"], "count": 3, "is_on": True},
    "status": {"conditions": [{"type": "Ready", "reason": "Fine"}, {"type": "Queued", "reason": "Wait"}]},
}
TWO = {"kind": "List", "items": [ONE, {"metadata": {"name": "b"}}]}


@pytest.mark.parametrize(
    ("template", "content", "text"),
    [
        ("{.metadata.name}", ONE, "a"),
        (".metadata.name", ONE, "a"),
        ("metadata.name", ONE, "a"),
        ("{$.metadata.name}", ONE, "a"),
        ("{.metadata.labels['example.com/team']}", ONE, "web"),
        ("{.spec.names[0]} {.spec.names[-1]}", ONE, "x z"),
        ("{.spec.names[*]}", ONE, "x y z"),
        ("{.spec.names[9]}{.nothing.here}", ONE, ""),
        ("{.spec.count},{.spec.is_on}", ONE, "3,true"),
        ("{.metadata.labels}", ONE, '{"example.com/team":"web"}'),
        ('{.status.conditions[?(@.type=="Ready")].reason}', ONE, "Fine"),
        ("{.status.conditions[?(@.type!='Ready')].reason}", ONE, "Wait"),
        ('{range .items[*]}{.metadata.name}{"\\n"}{end}', TWO, "a\nb\n"),
        ("{range .nothing[*]}{.metadata.name}{end}!", TWO, "!"),
        ("{range .items[*]}{range .spec.names[*]}{@}-{end};{end}", TWO, "x-y-z-;;"),
        ("{.items[*].metadata.name}", TWO, "a b"),
    ],
)
def test_templates_find_what_kubectl_finds(template: str, content: Any, text: str) -> None:  # noqa: ANN401 - JSON
    assert jsonpath(template, content) == text


@pytest.mark.parametrize("template", ["{.a", "{.a[}", "{range .a}", "{range .items[*]}{.a}", "{end}", "{.a..b}"])
def test_what_is_no_template_is_refused(template: str) -> None:
    with pytest.raises(UsageError, match="-o jsonpath"):
        jsonpath(template, TWO)


def test_objects_are_printed_by_it() -> None:
    assert as_text([ONE], "jsonpath={.metadata}") == '{"name":"a","labels":{"example.com/team":"web"}}'


@pytest.mark.parametrize(
    "words",
    [
        ("backup", "get"),
        ("backup", "explain"),
        ("backup", "delete", "a"),
        ("restore", "get"),
        ("schedule", "get"),
        ("schedule", "explain"),
        ("schedule", "pause", "a"),
        ("schedule", "delete", "a"),
        ("schedule", "run", "a"),
        ("schedule", "simulate"),
        ("schedule", "spread"),
        ("policy", "get"),
    ],
)
def test_every_verb_that_prints_objects_takes_it(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    args = parser().parse_args([*words, "-o", "jsonpath={.a}"])
    assert args.output == "jsonpath={.a}"
    with pytest.raises(SystemExit):
        main([*words, "-o", "xml"])
    assert "jsonpath=" in capsys.readouterr().err
