"""Instants and objects as commands show them."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from foresail.cli.spans import short

_MOST_COUNTED = 100


def go_time(at: datetime) -> str:
    """Return an instant as Velero shows it where its clock stands in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} +0000 UTC"


def ago(at: datetime | None, now: datetime) -> str:
    """Return how long ago an instant was, as Velero says it."""
    return "n/a" if at is None else f"{short(now - at)} ago"


def moment(at: datetime, now: datetime) -> str:
    """Return an instant with how far away it is, in either direction."""
    seconds = f":{at:%S}" if at.second else ""
    distance = f"in {short(at - now)}" if at > now else f"{short(now - at)} ago"
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}{seconds} UTC ({distance})"


def runs(count: int) -> str:
    """Return a number of runs that the rules have counted; they stop at a hundred."""
    return "one run" if count == 1 else f"{count} runs" if count < _MOST_COUNTED else f"{count} runs or more"


def as_text(objects: Sequence[dict[str, Any]], form: str) -> str:
    """Return objects as JSON, YAML or names; one stands alone and several in a list, as with Velero."""
    if form == "name":
        return "\n".join(_name(each) for each in objects)
    bare = [_without_managers(each) for each in objects]
    whole: Any = bare[0] if len(bare) == 1 else {"apiVersion": "v1", "kind": "List", "items": bare}
    return document(whole, form)


def document(content: Any, form: str) -> str:  # noqa: ANN401 - JSON is any
    """Return anything as JSON or YAML."""
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
