"""Objects as JSON, YAML or names."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from foresail.cli.errors import UsageError
from foresail.cli.options.shared import JSONPATH
from foresail.kube.client import address
from foresail.plan import Key, Kind

_PIECE = re.compile(r"\{((?:[^{}\"']|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')*)\}|([^{}]+)")
_STEP = re.compile(
    r"\.(?P<field>[A-Za-z_][-\w]*|\*)"
    r"|\[(?P<index>-?\d+|\*)\]"
    r"|\['(?P<quoted>[^']+)'\]"
    r"|\[\?\(@(?P<path>[^=!]+?)\s*(?P<sign>==|!=)\s*(?P<value>\"[^\"]*\"|'[^']*'|[-\w.]+)\)\]"
)
_HINT = "write a template such as {.metadata.name} or {range .items[*]}{.metadata.name}{end}"


def jsonpath(template: str, whole: Any) -> str:  # noqa: ANN401 - JSON is any
    """Return the template with each path replaced by the values that it finds, separated by spaces."""
    if "{" not in template:
        template = f"{{{template if template[:1] in '.[$@' else '.' + template}}}"
    pieces = list(_pieces(template))
    text, rest = _rendered(pieces, whole, is_range=False)
    if rest:
        raise UsageError(f"-o jsonpath: {{end}} without a range in {template!r}", _HINT)
    return text


def _pieces(template: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(template):
        match = _PIECE.match(template, at)
        if match is None:
            raise UsageError(f"-o jsonpath: {template[at:]!r} cannot be read", _HINT)
        inside, outside = match.groups()
        yield ("text", outside) if inside is None else ("path", inside.strip())
        at = match.end()


def _rendered(pieces: list[tuple[str, str]], at: Any, *, is_range: bool) -> tuple[str, list[tuple[str, str]]]:  # noqa: ANN401
    """Return the text of the pieces up to their end, and the pieces behind it."""
    text = ""
    while pieces:
        (kind, content), *pieces = pieces
        if kind == "text":
            text += content
        elif content[:1] in ("'", '"'):
            text += content[1:-1].encode().decode("unicode_escape")
        elif content.startswith("range "):
            block = pieces
            behind = pieces
            for item in [*_found(content.removeprefix("range ").strip(), at)]:
                piece, behind = _rendered(block, item, is_range=True)
                text += piece
            pieces = behind if behind is not block else _behind_end(block)
        elif content == "end":
            return (text, pieces) if is_range else (text, [("path", "end"), *pieces])
        else:
            text += " ".join(_shown(item) for item in _found(content, at))
    if is_range:
        raise UsageError("-o jsonpath: a range has no {end}", _HINT)
    return text, []


def _behind_end(pieces: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the pieces behind the end of a range that has found nothing."""
    depth = 1
    for number, (kind, content) in enumerate(pieces):
        depth += (kind == "path" and content.startswith("range ")) - (kind == "path" and content == "end")
        if not depth:
            return pieces[number + 1 :]
    raise UsageError("-o jsonpath: a range has no {end}", _HINT)


def _found(path: str, whole: Any) -> list[Any]:  # noqa: ANN401
    items = [whole]
    at = 1 if path[:1] in ("$", "@") else 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            raise UsageError(f"-o jsonpath: {path[at:]!r} in {path!r} is not a path step", _HINT)
        items = [one for item in items for one in _taken(step, item)]
        at = step.end()
    return items


def _taken(step: re.Match[str], item: Any) -> list[Any]:  # noqa: ANN401
    index = step["index"]
    field = step["field"] or step["quoted"]
    if "*" in (field, index):
        return _all_of(item)
    if field is not None:
        return [item[field]] if isinstance(item, dict) and field in item else []
    if index is not None:
        return [item[int(index)]] if isinstance(item, list) and -len(item) <= int(index) < len(item) else []
    wanted = step["value"].strip("\"'")
    is_equal = step["sign"] == "=="
    items = item if isinstance(item, list) else []
    return [one for one in items if (wanted in [_shown(value) for value in _found(step["path"], one)]) is is_equal]


def _all_of(value: Any) -> list[Any]:  # noqa: ANN401
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list) else []


def _shown(value: Any) -> str:  # noqa: ANN401
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


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


class Request(msgspec.Struct, frozen=True):
    """One write."""

    method: str
    kind: Kind
    key: Key
    body: dict[str, Any] | None = None

    @property
    def path(self) -> str:
        """The address that it goes to."""
        return address(self.kind, self.key.namespace, "" if self.method == "POST" else self.key.name)

    def as_data(self) -> dict[str, Any]:
        """Return it for people and programs to read."""
        body = {} if self.body is None else {"body": self.body}
        return {"method": self.method, "path": self.path, **body}


def shown(requests: list[Request], form: str) -> str:
    """Return requests as they would be sent: YAML unless `-o` selects JSON or a template."""
    is_data = form == "json" or form.startswith(JSONPATH)
    return document([request.as_data() for request in requests], form if is_data else "yaml")
