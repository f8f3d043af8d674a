"""One field at a time: what a tenant wrote, what the policy requires, and what comes of both.

Everything here returns the value that Velero gets, or raises Refusal with the sentence that the tenant reads.
"""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

import msgspec

from foresail.api.policy import Bounds
from foresail.api.selectors import problem_of
from foresail.api.specs import LabelSelector, LocalReference, UploaderConfigForBackup, UploaderConfigForRestore
from foresail.cron.duration import nanoseconds

T = TypeVar("T")

MOST_ENTRIES = 256
"""Of a list or a map: more than anyone writes by hand, few enough that Velero goes through them for every object."""

MOST_FILES = 64
"""Uploaded or downloaded at once, where the policy says nothing."""

_LABEL_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_LABEL_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
RESERVED_DOMAINS = ("velero.io", "openshift.io", "foresail.dev", "k8s.io", "kubernetes.io")


class Refusal(Exception):  # noqa: N818 - the answer to a tenant, not an error of ours
    """Ends the making of a spec with what the tenant is told."""


class Violation(Refusal):
    """A refusal of a well-formed value that the policy, or a bound of ours, does not allow."""


def shown(value: object, most: int = 80) -> str:
    """Return a value as it appears in a message: never longer than a line, whatever a tenant wrote."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    text = "".join(character if character.isprintable() else "?" for character in text[: most + 1])
    return text if len(text) <= most else f"{text[:most]}..."


def read(of: type[T], tenant: Mapping[str, Any], path: str) -> T:
    """Read the tenant's spec; an unknown field is refused, because it has no rule."""
    try:
        spec = msgspec.convert(tenant, of)
        known = as_json(spec)
    except (msgspec.ValidationError, RecursionError, UnicodeEncodeError) as error:
        raise Refusal(f"{path} is invalid; correct it: {shown(str(error), 200)}") from None
    unknown = _first_unread(tenant, known, path)
    if unknown is not None:
        raise Refusal(f"{shown(unknown)} is not supported by self-service; remove it")
    return spec


def as_json(spec: object) -> Any:  # noqa: ANN401 - JSON is any
    """Return a spec as it goes over the wire, with nothing in it of where it came from."""
    return msgspec.json.decode(msgspec.json.encode(spec))


def _first_unread(wrote: object, was_read: object, path: str) -> str | None:
    if isinstance(wrote, Mapping) and isinstance(was_read, Mapping):
        for key, value in wrote.items():
            if value is None:
                continue  # the same as absent
            if key not in was_read:
                return f"{path}.{key}"
            deeper = None if key == "initContainers" else _first_unread(value, was_read[key], f"{path}.{key}")
            if deeper is not None:
                return deeper
    elif isinstance(wrote, (list, tuple)) and isinstance(was_read, (list, tuple)):
        for index, (value, known) in enumerate(zip(wrote, was_read, strict=True)):
            deeper = _first_unread(value, known, f"{path}[{index}]")
            if deeper is not None:
                return deeper
    return None


# Required, else the tenant's, else the default


def settled(path: str, wrote: T | None, required: T | None, default: T | None, check: Callable[[T], None]) -> T | None:
    """Return the value of a field; `check` is for what the tenant wrote, the administrator's own is taken as it is."""
    if required is not None:
        if wrote is not None and wrote != required:
            raise Violation(f"the administrator has restricted {path} field value to {shown(required)}")
        return required
    if wrote is None:
        return default
    check(wrote)
    return wrote


def anything(_value: object) -> None:
    """Let every value stand."""


def listed(path: str, allowed: Collection[str], policy: str) -> Callable[[str], None]:
    """Return the check that a name is in the policy's list."""

    def check(value: str) -> None:
        if value not in allowed:
            choice = f"choose one of {shown(', '.join(dict.fromkeys(allowed)))}" if allowed else "remove it"
            raise Violation(f"{path} {shown(value)} is not allowed by SelfServicePolicy {policy}; {choice}")

    return check


def config_map(path: str, allowed: Collection[str], policy: str) -> Callable[[LocalReference], None]:
    """Return the check that a reference is to a ConfigMap in the policy's list."""

    def check(value: LocalReference) -> None:
        if value.api_group or value.kind.lower() != "configmap":
            raise Refusal(f"{path} must name a ConfigMap; set its kind to configmap, or remove it")
        listed(path, allowed, policy)(value.name)

    return check


# Durations


def length(path: str, duration: str) -> int:
    """Return the nanoseconds of a duration."""
    parsed = nanoseconds(duration)
    if parsed is None or parsed < 0:
        raise Refusal(f"{path} {shown(duration)} is not a duration; write 90m or 720h")
    return parsed


def duration(
    path: str, wrote: str | None, bounds: Bounds, *, required: str | None, default: str | None, ceiling: str | None
) -> str | None:
    """Return a duration within its bounds; zero means to Velero that there is none, so it does to us.

    The ceiling is ours: it holds where the policy has no maximum.
    """
    asked = length(path, wrote) if wrote is not None else 0
    if required is not None:
        if asked and asked != length(path, required):
            raise Violation(f"the administrator has restricted {path} field value to {required}")
        return required
    if wrote is None or not asked:
        return default
    maximum = bounds.maximum or ceiling
    if bounds.minimum is not None and asked < length(path, bounds.minimum):
        raise Violation(f"{path} {shown(wrote)} is too short; the minimum is {bounds.minimum}")
    if maximum is not None and asked > length(path, maximum):
        raise Violation(f"{path} {shown(wrote)} is too long; the maximum is {maximum}")
    return wrote


# Files at once

Uploader = TypeVar("Uploader", UploaderConfigForBackup, UploaderConfigForRestore)


def files_at_once(path: str, most: int | None, policy: str) -> Callable[[int | None], None]:
    """Return the check that a number of files is within the policy's bound."""

    def check(count: int | None) -> None:
        limit = MOST_FILES if most is None else most
        if count is not None and not 0 <= count <= limit:
            raise Violation(f"{path} {count} is not allowed by SelfServicePolicy {policy}; the maximum is {limit}")

    return check


# Labels


def selectors(
    path: str, one: LabelSelector | None, several: tuple[LabelSelector, ...] | None
) -> tuple[LabelSelector | None, tuple[LabelSelector, ...] | None]:
    """Return both kinds of label selector, of which Velero takes one; a selector can only narrow what is taken."""
    if one is not None and several:
        raise Refusal(f"{path}.labelSelector and {path}.orLabelSelectors cannot be combined; remove one")
    few_enough(f"{path}.orLabelSelectors", several)
    for label_selector in several or ():
        selector(f"{path}.orLabelSelectors", label_selector)
    return selector(f"{path}.labelSelector", one), several or None


def selector(path: str, value: LabelSelector | None) -> LabelSelector | None:
    """Return a selector that Velero can read."""
    if value is None:
        return None
    problem = problem_of(value)
    if problem is not None:
        raise Refusal(f"{path} is invalid; correct it: {shown(problem)}")
    few_enough(path, value.match_labels)
    few_enough(path, value.match_expressions)
    for key, text in (value.match_labels or {}).items():
        _label(path, key, text)
    for expression in value.match_expressions or ():
        few_enough(path, expression.values)
        for text in expression.values or ("",):
            _label(path, expression.key, text)
    return value


def own_labels(path: str, labels: Mapping[str, str] | None) -> dict[str, str] | None:
    """Return labels of a tenant's own choice; by those of Velero, the cluster and us, objects are recognised."""
    few_enough(path, labels)
    for key, text in (labels or {}).items():
        _label(path, key, text)
        domain = key.rpartition("/")[0]
        if any(domain == reserved or domain.endswith(f".{reserved}") for reserved in RESERVED_DOMAINS):
            raise Violation(f"{path} {shown(key)} is reserved; choose a label without {domain}")
    return dict(labels) if labels else None


def _label(path: str, key: str, text: str) -> None:
    prefix, slash, name = key.rpartition("/")
    if not _LABEL_NAME.fullmatch(name) or (slash and not _LABEL_PREFIX.fullmatch(prefix)):
        raise Refusal(f"{path} contains {shown(key)}, which is not a valid label key; correct it")
    if text and not _LABEL_NAME.fullmatch(text):
        raise Refusal(f"{path} contains {shown(text)}, which is not a valid label value; correct it")


def few_enough(path: str, entries: Collection[object] | None) -> None:
    """Refuse what is longer than anyone needs."""
    if entries is not None and len(entries) > MOST_ENTRIES:
        raise Violation(f"{path} has {len(entries)} entries; shorten it to at most {MOST_ENTRIES}")
