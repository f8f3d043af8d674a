"""Objects as JSON, YAML or names."""

import json
from collections.abc import Sequence
from typing import Any

from foresail.cli.options.output import JSONPATH


def as_text(objects: Sequence[dict[str, Any]], form: str) -> str:
    """Return objects as JSON, YAML or names; one alone, several in a list, as with Velero."""
    if form == "name":
        return "\n".join(_name(item) for item in objects)
    bare = [_without_managers(item) for item in objects]
    whole: Any = bare[0] if len(bare) == 1 else {"apiVersion": "v1", "kind": "List", "items": bare}
    return document(whole, form)


def document(content: Any, form: str) -> str:  # noqa: ANN401 - JSON is any
    """Return anything as JSON or YAML, or what a JSONPath template finds in it."""
    if form.startswith(JSONPATH):
        from foresail.cli.output.jsonpath import jsonpath  # noqa: PLC0415 - only where it is asked for

        return jsonpath(form.removeprefix(JSONPATH), content)
    if form == "json":
        return json.dumps(content, indent=2)
    import yaml  # noqa: PLC0415 - only where it is asked for

    class Plain(yaml.SafeDumper):
        """Writes the same thing twice rather than refer to the first."""

        def ignore_aliases(self, _data: object) -> bool:
            return True

    text: str = yaml.dump(content, Dumper=Plain, sort_keys=False, allow_unicode=True)
    return text.rstrip("\n")


def _name(content: dict[str, Any]) -> str:
    group, _, _ = content["apiVersion"].rpartition("/")
    return f"{content['kind'].lower()}.{group}/{content['metadata']['name']}"


def _without_managers(content: dict[str, Any]) -> dict[str, Any]:
    metadata = {name: value for name, value in content["metadata"].items() if name != "managedFields"}
    return {**content, "metadata": metadata}
