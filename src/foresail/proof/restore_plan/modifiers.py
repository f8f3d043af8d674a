"""Velero's resource modifiers: rules that patch items before they are created."""

import copy
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from foresail.api.selectors import selects
from foresail.api.specs import LabelSelector
from foresail.proof.restore_plan.items import Document, ItemKey, metadata, texts
from foresail.scope.globs import compiled

_OPERATIONS = ("add", "remove", "replace", "test", "move", "copy")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity)|nan", re.IGNORECASE)
_Scalar = str | int | float | bool | None  # Velero reads any of them as text


class ModifierError(Exception):
    """Why the modifiers, or one patch of them, cannot be applied."""


class _MissingError(ModifierError):
    pass


class _Match(msgspec.Struct, forbid_unknown_fields=True):
    path: str = ""
    value: _Scalar = ""


class _Conditions(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    group_resource: str = ""
    namespaces: list[str] = []
    resource_name_regex: str = ""
    label_selector: LabelSelector | None = None
    matches: list[_Match] = []


class _Patch(msgspec.Struct, forbid_unknown_fields=True):
    operation: str = ""
    path: str = ""
    value: _Scalar = ""
    origin: str = msgspec.field(default="", name="from")


class _MergePatch(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    patch_data: str = ""


class _Rule(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    conditions: _Conditions = msgspec.field(default_factory=_Conditions)
    patches: list[_Patch] = []
    merge_patches: list[_MergePatch] = []
    strategic_patches: list[_MergePatch] = []


class _Rules(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    version: str = ""
    resource_modifier_rules: list[_Rule] = []


@dataclass(frozen=True, slots=True)
class Modified:
    """An item after the modifiers: `problem` if one failed, `is_unpredictable` if one is a strategic merge patch."""

    body: Document
    problem: str = ""
    is_unpredictable: bool = False


class Modifiers:
    """The rules of a ConfigMap with resource modifiers."""

    def __init__(self, rules: Sequence[_Rule] = ()) -> None:
        self._rules = rules

    def applied(self, resource: str, body: Document) -> Modified:
        """Return an item as the rules change it; every rule is matched against the item as it was."""
        document = body
        problem = ""
        is_unpredictable = False
        for rule in self._rules:
            try:
                if not _is_match(rule.conditions, resource, body):
                    continue
                if rule.patches:
                    document = _patched(document, rule.patches)
                elif rule.merge_patches:
                    for patch in rule.merge_patches:
                        document = merged(document, _yaml_object(patch.patch_data))
                elif rule.strategic_patches:
                    is_unpredictable = True
                else:
                    problem = problem or "a resource modifier has no patches"
            except (ModifierError, re.error) as error:
                problem = problem or f"a resource modifier cannot be applied: {error}"
        return Modified(document, problem, is_unpredictable)


def read_modifiers(rules: Mapping[str, Any]) -> Modifiers:
    """Return the rules of a ConfigMap, already read from YAML."""
    try:
        read = msgspec.convert(rules, _Rules)
    except msgspec.ValidationError as error:
        raise ModifierError(f"the resource modifiers are not in Velero's format: {error}") from error
    if read.version.lower() != "v1":
        raise ModifierError(f"Velero rejects resource modifiers of version {read.version!r}: only v1 exists")
    if not read.resource_modifier_rules:
        raise ModifierError("Velero rejects resource modifiers without rules")
    for rule in read.resource_modifier_rules:
        _validate(rule)
    return Modifiers(read.resource_modifier_rules)


def _validate(rule: _Rule) -> None:
    if not rule.conditions.group_resource:
        raise ModifierError("Velero rejects a rule without groupResource")
    if sum(map(bool, (rule.patches, rule.merge_patches, rule.strategic_patches))) > 1:
        raise ModifierError("Velero rejects a rule with more than one kind of patches")
    for patch in rule.patches:
        if patch.operation.lower() not in _OPERATIONS or not patch.path:
            raise ModifierError(f"Velero rejects a patch with operation {patch.operation!r} and path {patch.path!r}")


def modified_target(target: ItemKey, before: Document, after: Document) -> ItemKey:
    """Return the key of an item after modifiers, which may change its name and its API group."""
    name = metadata(after).get("name")
    resource = target.resource
    groups = [str(item.get("apiVersion", "")).rpartition("/")[0] for item in (before, after)]
    if groups[0] != groups[1]:
        resource = ".".join(filter(None, (resource.partition(".")[0], groups[1])))
    return ItemKey(resource, target.namespace, name if isinstance(name, str) else target.name)


def merged(target: Any, patch: Any) -> Any:  # noqa: ANN401 - JSON is any
    """Return a JSON value after a merge patch."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    item = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            item.pop(name, None)
        else:
            item[name] = merged(item.get(name), value)
    return item


def _is_match(conditions: _Conditions, resource: str, body: Document) -> bool:
    about = metadata(body)
    namespace = str(about.get("namespace", ""))
    name = str(about.get("name", ""))
    namespaces = conditions.namespaces if namespace else []
    if namespaces and not any(_is_glob_match(pattern, namespace) for pattern in namespaces):
        return False
    if not _is_glob_match(conditions.group_resource, resource, "."):
        return False
    if conditions.resource_name_regex and not re.search(conditions.resource_name_regex, name):
        return False
    if conditions.label_selector is not None and not selects(conditions.label_selector, texts(about.get("labels"))):
        return False
    try:
        return all(_is_equal(body, condition.path, condition.value) for condition in conditions.matches)
    except _MissingError:
        return False


def _is_glob_match(pattern: str, name: str, separator: str = "") -> bool:
    is_match = compiled(pattern, separator)
    if is_match is None:
        raise ModifierError(f"{pattern!r} is not a glob")
    return is_match(name)


def _is_equal(body: Document, path: str, value: _Scalar) -> bool:
    """Whether a field has a value; an absent field of an object has the value null."""
    parent, last = _parent(body, path)
    document = parent.get(last) if isinstance(parent, dict) else _child(parent, last, path)
    return json.dumps(document, sort_keys=True) == json.dumps(_value(value), sort_keys=True)


class _TestFailedError(Exception):
    pass


def _patched(body: Document, patches: Sequence[_Patch]) -> Document:
    patched: Any = copy.deepcopy(body)
    try:
        for patch in patches:
            _apply(patched, patch)
    except _TestFailedError:
        return body
    return patched if isinstance(patched, dict) else body


def _apply(body: Any, patch: _Patch) -> None:  # noqa: ANN401
    match patch.operation:
        case "test":
            if not _is_equal(body, patch.path, patch.value):
                raise _TestFailedError
        case "add":
            _put(body, patch.path, _value(patch.value))
        case "replace":
            _value_at(body, patch.path)
            _remove(body, patch.path)
            _put(body, patch.path, _value(patch.value))
        case "remove":
            _remove(body, patch.path)
        case "move" | "copy":
            value = copy.deepcopy(_value_at(body, patch.origin))
            if patch.operation == "move":
                _remove(body, patch.origin)
            _put(body, patch.path, value)
        case other:
            raise ModifierError(f"unknown operation {other!r}")


def _steps(path: str) -> list[str]:
    if not path.startswith("/"):
        raise ModifierError(f"the path {path!r} does not begin with /")
    return [step.replace("~1", "/").replace("~0", "~") for step in path[1:].split("/")]


def _parent(body: Any, path: str) -> tuple[Any, str]:  # noqa: ANN401
    *steps, last = _steps(path)
    try:
        for step in steps:
            body = _child(body, step, path)
    except ModifierError as error:
        raise _MissingError(*error.args) from error
    return body, last


def _child(parent: Any, step: str, path: str) -> Any:  # noqa: ANN401
    if isinstance(parent, dict) and step in parent:
        return parent[step]
    if isinstance(parent, list) and step.isdecimal() and int(step) < len(parent):
        return parent[int(step)]
    raise ModifierError(f"the item has no {path}")


def _value_at(body: Any, path: str) -> Any:  # noqa: ANN401
    parent, last = _parent(body, path)
    return _child(parent, last, path)


def _put(body: Any, path: str, value: Any) -> None:  # noqa: ANN401
    parent, last = _parent(body, path)
    if isinstance(parent, dict):
        parent[last] = value
    elif isinstance(parent, list) and (last == "-" or (last.isdecimal() and int(last) <= len(parent))):
        parent.insert(len(parent) if last == "-" else int(last), value)
    else:
        raise ModifierError(f"the item has no {path}")


def _remove(body: Any, path: str) -> None:  # noqa: ANN401
    parent, last = _parent(body, path)
    _child(parent, last, path)
    del parent[int(last) if isinstance(parent, list) else last]


def _value(value: _Scalar) -> Any:  # noqa: ANN401
    """Return what Velero puts into a patch: the text as JSON if it looks like it, else as a string."""
    text = _text(value)
    if text.startswith('"') and text.endswith('"'):
        wire = f'"{text[1:-1]}"'
    elif text == "null" or text.lower() in ("true", "false") or text.startswith(("{", "[")) or _NUMBER.fullmatch(text):
        wire = text
    else:
        wire = f'"{text}"'
    try:
        return json.loads(wire, parse_constant=_reject)
    except (ValueError, RecursionError) as error:
        raise ModifierError(f"the value {text[:40]!r} is not JSON") from error


def _text(value: _Scalar) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.9g}"
    return "" if value is None else str(value)


def _reject(constant: str) -> None:
    raise ValueError(constant)


def _yaml_object(text: str) -> Any:  # noqa: ANN401
    try:
        return msgspec.yaml.decode(text)
    except msgspec.DecodeError as error:
        raise ModifierError("a merge patch is not YAML") from error
