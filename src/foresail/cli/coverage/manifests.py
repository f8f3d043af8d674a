"""`foresail coverage --manifests`: which class the Namespaces in files name, by the operator's own rule."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from foresail.api import core
from foresail.api.marks import EXEMPT
from foresail.api.protection import PROTECTION_CLASS, ProtectionClass
from foresail.cli.errors import CommandError
from foresail.cli.options.values import documents, objects
from foresail.cli.output.messages import hint
from foresail.cli.output.table import table
from foresail.kube.clock import now
from foresail.protection.reasons import Reason
from foresail.protection.rows import ClassRow, NamespaceRow, class_row, namespace_row
from foresail.protection.rules import choice
from foresail.protection.view import Classes

_SUFFIXES = (".yaml", ".yml", ".json")
_CREATED = "2000-01-01T00:00:00Z"  # a manifest has no such time, and no rule about its label needs it


@dataclass(frozen=True)
class Named:
    """What a Namespace in a file asks for, and why it would not be protected; no gap is empty."""

    namespace: str
    protection_class: str
    gap: str = ""
    message: str = ""


def run_manifests(args: argparse.Namespace) -> int:
    """Print each Namespace of a folder with its class; return 1 for gaps if --fail-on asks for that."""
    namespaces, classes = read_manifests(Path(args.manifests))
    if not namespaces:
        raise CommandError(f"{args.manifests} contains no Namespace", "specify the folder with the manifests")
    if not classes:
        hint(f"{args.manifests} contains no ProtectionClass, so every name of a class is accepted")
    judgements = [judged(row, classes, now()) for row in sorted(namespaces, key=lambda row: row.name)]
    if args.output == "json":
        print(json.dumps([asdict(judgement) for judgement in judgements], indent=2))
    else:
        rows = [
            (judgement.namespace, judgement.protection_class or "-", judgement.gap or "-", judgement.message or "-")
            for judgement in judgements
        ]
        print(table(("NAMESPACE", "CLASS", "GAP", "MESSAGE"), rows))
    gaps = sum(bool(judgement.gap) for judgement in judgements)
    print(f"{len(judgements) - gaps} of {len(judgements)} namespaces have no gap", file=sys.stderr)
    return int(bool(args.fail_on and gaps))


def read_manifests(folder: Path) -> tuple[list[NamespaceRow], list[ClassRow]]:
    """Return the Namespaces and the ProtectionClasses in the files of a folder, or in one file."""
    files = sorted(file for file in folder.rglob("*") if file.suffix in _SUFFIXES) if folder.is_dir() else [folder]
    namespaces, classes = list[NamespaceRow](), list[ClassRow]()
    for file in files:
        for document in objects(documents(str(file)), core.NAMESPACE.name, PROTECTION_CLASS.name):
            if document["kind"] == core.NAMESPACE.name:
                namespaces.append(namespace_row(_converted(file, document, core.Namespace)))
            else:
                classes.append(class_row(_converted(file, document, ProtectionClass)))
    return namespaces, classes


def _converted(file: Path, document: dict[str, Any], of: Any) -> Any:  # noqa: ANN401 - of that type
    metadata = {"uid": "", "creationTimestamp": _CREATED, **(document.get("metadata") or {})}
    try:
        return msgspec.convert({**document, "metadata": metadata}, of)
    except msgspec.ValidationError as error:
        raise CommandError(f"{file}: {document['kind']} cannot be decoded: {error}", "correct that field") from error


def judged(row: NamespaceRow, classes: Sequence[ClassRow], at: datetime) -> Named:
    """Return what a Namespace gets from these classes; without any, every name of a class is taken for one."""
    known = {known_class.name: known_class for known_class in classes}
    unread = {row.asked: ""} if not classes and row.asked not in ("", EXEMPT) else {}
    chosen = choice(row, Classes(known, unread), at)
    if chosen.problem is not None:
        return Named(row.name, chosen.protection_class, chosen.problem.reason.value, chosen.problem.message)
    if not chosen.protection_class and chosen.exempt_until is None and not row.is_excluded:
        text = "it names no class, and no class is the default"
        return Named(row.name, "", Reason.NO_CLASS.value, text)
    return Named(row.name, chosen.protection_class)
