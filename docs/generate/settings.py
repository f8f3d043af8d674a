"""What an administrator can set: flags of the operator, and values of the chart."""

from pathlib import Path
from typing import Any

import yaml

from docs.generate.commands import option, options
from docs.generate.tables import code, table
from foresail.cli.main import parser

_CHART = Path(__file__).parents[2] / "charts" / "foresail"
_TOP = """# Settings

Of the operator, by its flags or by the values of its chart; what tenants may do is set by [SelfServicePolicies](kinds.md#selfservicepolicy).

## Flags of `foresail operator run`
"""
_VALUES = """## Values of the chart `foresail`

Checked by Helm against `values.schema.json`: a value that is misspelt is refused.
"""


def page() -> str:
    """Return the page."""
    (run,) = (one for words, one in parser().commands() if words == "foresail operator run")
    flags = [
        f"### {(title or 'other').capitalize()}\n\n" + table(("flag", "meaning"), map(option, actions))
        for title, actions in options(run)
    ]
    return "\n".join([_TOP, *flags, _VALUES, table(("value", "default", "meaning"), values())])


def values() -> list[tuple[str, str, str]]:
    """Return each value with the comment above it; a comment above a group is told with its first value."""
    text = (_CHART / "values.yaml").read_text()
    defaults, found, said = yaml.safe_load(text), [], ""
    path: list[tuple[int, str]] = []
    for line in text.splitlines():
        word = line.strip()
        if word.startswith("#"):
            said = f"{said} {word.removeprefix('#').strip()}".strip()
            continue
        if not word:
            said = ""
            continue
        indent, name = len(line) - len(line.lstrip()), word.partition(":")[0]
        path = [*(each for each in path if each[0] < indent), (indent, name)]
        names = [each for _, each in path]
        value = _at(defaults, names)
        if not isinstance(value, dict) or not value:
            found.append((code(".".join(names)), code(_shown(value)), said))
            said = ""
    return found


def _at(values: Any, names: list[str]) -> Any:  # noqa: ANN401 - YAML
    for name in names:
        values = values[name]
    return values


def _shown(value: object) -> str:
    return yaml.safe_dump(value, default_flow_style=True).removesuffix("\n").removesuffix("\n...").replace("''", '""')
