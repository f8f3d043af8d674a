"""Values of options as users write them: lists, pairs, durations."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from foresail.cli.errors import CommandError, UsageError
from foresail.kube.clock import now


def spelled(option: str) -> str:
    """Return an option as users write it."""
    return "--" + option.replace("_", "-")


def read_list(given: Sequence[str] | None) -> list[str]:
    """Return the values of an option that takes several, separated by commas or given again."""
    return [name for text in given or () for name in text.split(",") if name]


def metadata_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the metadata of a new object: its name, and its namespace, labels and annotations if they are given."""
    metadata: dict[str, Any] = {"name": args.name}
    if args.namespace is not None:
        metadata["namespace"] = args.namespace
    for field in ("labels", "annotations"):
        pairs = read_pairs(getattr(args, field), f"--{field}")
        if pairs:
            metadata[field] = pairs
    return metadata


def read_pairs(given: Sequence[str], option: str) -> dict[str, str]:
    """Return the names and values of an option such as `--labels a=b,c=d`."""
    pairs: dict[str, str] = {}
    for pair in read_list(given):
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise UsageError(f"{option}: {pair!r} has no name and value", f"write {option} name=value,other=value")
        pairs[name.strip()] = value.strip()
    return pairs


def read_ordered(text: str) -> dict[str, str]:
    """Return the kinds of `--ordered-resources`, each with the names in their order."""
    ordered: dict[str, str] = {}
    for entry in filter(None, text.split(";")):
        kind, equals, names = entry.partition("=")
        if not equals or "=" in names:
            hint = "write 'pods=ns/a,ns/b;persistentvolumeclaims=ns/c'"
            raise UsageError(f"--ordered-resources: {entry!r} is not a kind with names", hint)
        ordered[kind.strip()] = names.strip()
    return ordered


def positive(text: str) -> int:
    """Read a whole number of at least 1."""
    return _whole(text, 1)


def whole_number(text: str) -> int:
    """Read a whole number of at least 0."""
    return _whole(text, 0)


def _whole(text: str, least: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
    return int(text)


def read_length(text: str, option: str) -> int:
    """Return the duration that an option was given, in nanoseconds."""
    from foresail.cron.duration import nanoseconds  # noqa: PLC0415 - few commands need the package of cron

    length = nanoseconds(text)
    if length is None or length < 0:
        raise UsageError(f"{option}: {text!r} is not a duration", "write 72h, 90m or 1h30m")
    return length


def deadline(text: str | None) -> datetime | None:
    """Return when `--timeout` ends the waiting; None if there is no end."""
    if text is None:
        return None
    return now() + timedelta(microseconds=read_length(text, "--timeout") / 1000)


def documents(file: str) -> list[Any]:
    """Return the documents of a file, decoded; `-` is standard input."""
    from pathlib import Path  # noqa: PLC0415 - with urllib it costs more than the rest of the options

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


def objects(parsed: list[Any], *kinds: str) -> Iterator[dict[str, Any]]:
    """Yield every object of some kinds among decoded documents, lists of them included."""
    pending = parsed[::-1]  # not by recursion: lists in lists may be nested deeply
    while pending:
        document = pending.pop()
        if not isinstance(document, dict):
            continue
        items = document.get("items")
        if isinstance(items, list):
            pending += reversed(items)
        elif document.get("kind") in kinds:
            yield document
