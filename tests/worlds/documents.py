"""JSON objects as an API server treats them: merged, selected and compared; none is ever changed in place."""

import copy
import re
from collections.abc import Callable, Sequence
from typing import Any

Document = dict[str, Any]
Choice = Callable[[Document], bool]

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_NAME = 253
_TERM = re.compile(r"(?P<not>!)?(?P<key>[-\w./]+)(?:\s*(?P<operator>==|=|!=)\s*(?P<value>[-\w.]*))?")


def is_name(text: object) -> bool:
    """Tell whether an object may be called that."""
    return isinstance(text, str) and len(text) <= _LONGEST_NAME and bool(_NAME.fullmatch(text))


def merged(old: object, patch: object) -> Any:  # noqa: ANN401 - JSON
    """Return what RFC 7386 makes of a document and a patch."""
    if not isinstance(patch, dict):
        return patch
    known = dict(old) if isinstance(old, dict) else {}
    for name, value in patch.items():
        if value is None:
            known.pop(name, None)
        else:
            known[name] = merged(known.get(name), value)
    return known


def patched(document: Document, operations: Sequence[Document]) -> Document:
    """Return what RFC 6902 makes of a document; an operation that does not fit is a LookupError or a ValueError."""
    new = copy.deepcopy(document)
    for each in operations:
        *parents, last = each["path"].split("/")[1:]
        at: Any = new
        for name in parents:
            at = at[int(name)] if isinstance(at, list) else at[name]
        place = int(last) if isinstance(at, list) and last != "-" else last
        match each["op"], place:
            case "add", "-" if isinstance(at, list):
                at.append(each["value"])
            case "add", str():
                at[place] = each["value"]
            case "replace", _:
                del at[place]
                at[place] = each["value"]
            case "remove", _:
                del at[place]
            case _:
                raise ValueError(f"this world knows no {each}")
    return new


def with_metadata(document: Document, **changed: object) -> Document:
    """Return the document with some of its metadata set, or taken away where the new value is None."""
    metadata = {**document.get("metadata", {}), **changed}
    return {**document, "metadata": {name: value for name, value in metadata.items() if value is not None}}


def metadata_of(document: Document) -> Document:
    """Return an object as it is shown to those who asked for metadata only."""
    return {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": document["metadata"]}


def selection(labels: str, fields: str) -> Choice:
    """Return the test that a label selector and a field selector make, of the forms that the runtime uses."""
    tests = [_label_test(term) for term in filter(None, map(str.strip, labels.split(",")))]
    tests += [_field_test(term) for term in filter(None, map(str.strip, fields.split(",")))]
    return lambda document: all(test(document) for test in tests)


def _label_test(term: str) -> Choice:
    parsed = _TERM.fullmatch(term)
    if parsed is None:
        raise NotImplementedError(f"label selector {term!r}: this world knows key, !key, key=value and key!=value")
    key, operator, value = parsed["key"], parsed["operator"], parsed["value"]

    def test(document: Document) -> bool:
        labels = document["metadata"].get("labels") or {}
        if operator is None:
            return (key in labels) is (parsed["not"] is None)
        return (labels.get(key) == value) is (operator != "!=")

    return test


def _field_test(term: str) -> Choice:
    name, _, value = term.partition("=")
    if name not in ("metadata.name", "metadata.namespace"):
        raise NotImplementedError(f"field selector {term!r}: this world selects by name and namespace only")
    field = name.removeprefix("metadata.")
    return lambda document: document["metadata"].get(field) == value
