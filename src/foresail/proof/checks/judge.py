"""How a check ends: what arrived in the sandbox, compared item by item with what the backup has."""

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import msgspec

from foresail.api.restore_check import MOST_NAMESPACES, MOST_OBJECTS
from foresail.api.velero import COMPLETED
from foresail.proof.checks.contents import Contents, Item, Lists, lists_of
from foresail.proof.checks.kinds import kind_of
from foresail.proof.checks.reasons import Problem, Reason
from foresail.proof.restore_plan.refusals import Answer, refused_by

MOST_IN_EVIDENCE = 100
"""Problems; the count is of all."""

_LONGEST_LINE = 1024
_MOST_LINES = 2000
_SHOWN = 3
_PREFIX = re.compile(r"^error restoring \S+: ")
_NAMES = (re.compile(r"/[^/\s]+/[^/\s]+:(?=\s|$)"), re.compile(r"\b\w+:\S+(?= )"), re.compile(r'"[^"]+"'))
"""How Velero and the API server name an object: `/namespace/name:`, `Kind:name` and `"name"`."""

_ARRIVED = ("created", "updated")
_MADE_BY_CLUSTER = frozenset(
    {
        ("ConfigMap", "kube-root-ca.crt"),
        ("ConfigMap", "openshift-service-ca.crt"),
        ("ServiceAccount", "default"),
        ("ServiceAccount", "builder"),
        ("ServiceAccount", "deployer"),
    }
)
"""What every new namespace has, so Velero does not create it."""


class _Part(msgspec.Struct):
    velero: list[str] | None = None
    cluster: list[str] | None = None
    namespaces: dict[str, list[str] | None] | None = None

    def lines(self) -> list[str]:
        own = [line for namespace in (self.namespaces or {}).values() for line in namespace or ()]
        lines = [*own, *(self.velero or ()), *(self.cluster or ())]
        return [line[:_LONGEST_LINE] for line in lines[:_MOST_LINES]]


class _Results(msgspec.Struct):
    errors: _Part | None = None
    warnings: _Part | None = None


_results = msgspec.json.Decoder(_Results)


class Verdict(msgspec.Struct, frozen=True):
    """The result of a check: it has passed if there is no problem."""

    problems: tuple[Problem, ...] = ()
    count: int = 0
    expected: int = 0
    found: int = 0
    not_checked: int = 0
    digests: tuple[tuple[str, str], ...] = ()
    pods_ready: int | None = None
    exit_code: int | None = None  # of the assertion

    @property
    def reason(self) -> Reason:
        """The reason of the first problem."""
        return self.problems[0].reason if self.problems else Reason.COMPLETE

    @property
    def message(self) -> str:
        """The first problems in words."""
        if not self.problems:
            return f"The sandbox took all {self.expected} objects"
        more = f"; and {self.count - _SHOWN} more" if self.count > _SHOWN else ""
        return "; ".join(problem.message for problem in self.problems[:_SHOWN]) + more


def verdict_without_restore(contents: Contents, most_objects: int = MOST_OBJECTS) -> Verdict | None:
    """Return the verdict on a backup of which nothing is restored: none of it can be, or it has too much."""
    too_much = _too_much(contents, most_objects)
    if too_much is not None:
        return too_much
    if contents.namespaces:
        return None
    empty = Problem(Reason.BACKUP_EMPTY, "the backup has no object that can be checked")
    problems = contents.problems or (empty,)
    shown = problems[:MOST_IN_EVIDENCE]
    digests = (("contents", contents.digest),)
    return Verdict(shown, len(problems), contents.not_served, 0, contents.not_checked, digests)


def _too_much(contents: Contents, most_objects: int) -> Verdict | None:
    for reason, count, most, what in (
        (Reason.TOO_MANY_NAMESPACES, len(contents.namespaces), MOST_NAMESPACES, "namespaces"),
        (Reason.TOO_MANY_OBJECTS, contents.objects.total(), most_objects, "objects to restore"),
    ):
        if count > most:
            return failed(reason, f"the backup has {count} {what}; one check takes {most}")
    return None


def judge(
    contents: Contents, sandboxes: Mapping[str, str], phase: str, restored: bytes | None, results: bytes | None
) -> Verdict | None:
    """Compare what arrived with what the backup has; None if a file is not of Velero's shape."""
    lists = lists_of(restored) if restored is not None else {}
    lines = _lines(results)
    if lists is None or lines is None:
        return None
    errors = _RestoreMessages(lines[0])
    warnings = _RestoreMessages(lines[1])
    compared = _compare(contents, sandboxes, _actions(lists), errors, warnings)
    problems = [*contents.problems, *compared.refused]
    has_problems = bool(problems or compared.missing)
    problems += _restore_problem(phase, errors, compared.used, is_explained=has_problems)
    problems += compared.missing
    expected = contents.not_served + compared.expected
    if not (expected or problems):
        problems = [Problem(Reason.BACKUP_EMPTY, "the backup has no object that a new namespace does not have anyway")]
    digests = (
        ("contents", contents.digest),
        ("restored", sha256(restored or b"").hexdigest()),
        ("results", sha256(results or b"").hexdigest()),
    )
    not_checked = contents.not_checked + compared.not_checked
    shown = tuple(problems[:MOST_IN_EVIDENCE])
    return Verdict(shown, len(problems), expected, compared.found, not_checked, digests)


@dataclass(slots=True)
class _Compared:
    """What arrived of the objects of a backup, and Velero's lines about those that did not."""

    expected: int = 0
    found: int = 0
    not_checked: int = 0
    refused: list[Problem] = field(default_factory=list)
    missing: list[Problem] = field(default_factory=list)
    used: set[str] = field(default_factory=set)


def _compare(
    contents: Contents,
    sandboxes: Mapping[str, str],
    actions: Mapping[tuple[str, str, str, str], str],
    errors: "_RestoreMessages",
    warnings: "_RestoreMessages",
) -> _Compared:
    """Compare each object of the backup with what Velero did with it."""
    compared = _Compared()
    optional = frozenset(contents.optional)
    for item in (*contents.expected, *contents.optional):
        sandbox = sandboxes.get(item.namespace, "")
        action = actions.get((*kind_of(item.gvk), sandbox, item.name), "")
        said = errors.about(item, sandbox) if action == "failed" else ""
        compared.used.add(said)
        is_skipped = action == "skipped" or (not action and item in optional)
        if action in _ARRIVED:
            compared.expected += 1
            compared.found += 1
        elif is_skipped or _is_made_by_cluster(item, sandbox, said, warnings):
            compared.not_checked += 1
        else:
            compared.expected += 1
            problem = _problem(item, sandbox, action, said, warnings)
            (compared.refused if action else compared.missing).append(problem)
    return compared


def _restore_problem(
    phase: str, errors: "_RestoreMessages", used: Container[str], *, is_explained: bool
) -> list[Problem]:
    """Return the problem of a restore that is not complete, unless the problems of objects explain it."""
    rest = [line for line in errors.lines if line not in used]
    if phase == COMPLETED or (is_explained and not rest):
        return []
    shown = "; ".join(_tidy(line) for line in rest[:_SHOWN]) or "Velero reports no error"
    return [Problem(Reason.RESTORE_PARTIALLY_FAILED, f"the restore is {phase}: {shown}")]


def failed(reason: Reason, message: str) -> Verdict:
    """Return the verdict on a check that could not compare anything."""
    return Verdict((Problem(reason, message),), 1)


def _lines(results: bytes | None) -> tuple[list[str], list[str]] | None:
    if results is None:
        return [], []
    try:
        results_file = _results.decode(results)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    return (results_file.errors or _Part()).lines(), (results_file.warnings or _Part()).lines()


def _actions(lists: Lists) -> dict[tuple[str, str, str, str], str]:
    """Return what Velero did with each object, by group, kind, namespace and name: it may choose another version."""
    actions: dict[tuple[str, str, str, str], str] = {}
    for gvk, entries in lists.items():
        for entry in entries:
            key = (*kind_of(gvk), *_place(entry))
            action = entry.rpartition("(")[2].removesuffix(")")
            if actions.get(key) not in _ARRIVED:
                actions[key] = action
    return actions


def _place(entry: str) -> tuple[str, str]:
    place = entry.rpartition("(")[0]
    namespace, slash, name = place.partition("/")
    return (namespace, name) if slash else ("", namespace)


class _RestoreMessages:
    """Velero's lines, by the names in them: a backup may have many objects, and Velero much to say."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self._by_name: dict[str, str] = {}
        for line in lines:
            for pattern in _NAMES:
                for name in pattern.findall(line):
                    self._by_name.setdefault(name, line)

    def about(self, item: Item, sandbox: str) -> str:
        """Return the first line about an item; empty if there is none."""
        kind = item.gvk.rpartition("/")[2]
        name = item.name
        places = (f"/{sandbox}/{name}:", f"/{item.namespace}/{name}:", f"{kind}:{name}", f'"{name}"')
        return next((self._by_name[place] for place in places if place in self._by_name), "")


def _is_made_by_cluster(item: Item, sandbox: str, said: str, warnings: _RestoreMessages) -> bool:
    """Whether the sandbox had the object before Velero came, as every new namespace of this cluster has."""
    if (item.gvk.rpartition("/")[2], item.name) in _MADE_BY_CLUSTER:
        return True
    return not said and "already exists" in warnings.about(item, sandbox)


def _problem(item: Item, sandbox: str, action: str, said: str, warnings: _RestoreMessages) -> Problem:
    if not action:
        return Problem(Reason.ITEMS_MISSING, f"{item} is in the backup and was not restored")
    said = said or warnings.about(item, sandbox)
    by = refused_by(Answer(message=said)).value if said else ""
    return Problem(Reason.ITEMS_REFUSED, f"{item}: {_tidy(said) or 'Velero reports no reason'}", by)


def _tidy(line: str) -> str:
    line = _PREFIX.sub("", line)
    return " ".join("".join(character if character.isprintable() else " " for character in line).split())[:300]
