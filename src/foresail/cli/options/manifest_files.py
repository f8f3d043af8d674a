"""Manifests as people have them: YAML or JSON, one or several, from a file or from standard input."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from foresail.cli.errors import CommandError


def documents(file: str) -> list[Any]:
    """Return the documents of a file, decoded; `-` is standard input."""
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"cannot read {file}: {error}") from None
    return decoded(file, text)


def decoded(file: str, text: str) -> list[Any]:
    """Return the documents of a text; `file` is how errors call it."""
    if text.lstrip().startswith("{"):
        try:
            return [json.loads(text)]
        except (ValueError, RecursionError):
            pass  # several JSON documents, or YAML in braces: the YAML reader takes both
    import yaml  # noqa: PLC0415 - it costs more than the rest of the command, and JSON does not need it

    try:
        return list(yaml.load_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except yaml.YAMLError as error:
        raise CommandError(f"{file} is neither YAML nor JSON: {error}") from None
    except (ValueError, LookupError, AttributeError, RecursionError) as error:  # of a value such as 2026-99-99
        raise CommandError(
            f"{file} has a value that cannot be read: {error}", "correct it, or put it in quotes"
        ) from None


def objects(found: list[Any], *kinds: str) -> Iterator[dict[str, Any]]:
    """Yield every object of some kinds among decoded documents, lists of them included."""
    pending = found[::-1]  # not by recursion: lists in lists may be nested deeply
    while pending:
        each = pending.pop()
        if not isinstance(each, dict):
            continue
        items = each.get("items")
        if isinstance(items, list):
            pending += reversed(items)
        elif each.get("kind") in kinds:
            yield each
