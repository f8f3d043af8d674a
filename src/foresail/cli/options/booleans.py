"""Options whose value may be left out: true or false, as with Velero, and the kind of a dry run, as with kubectl."""

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

_VALUES = {"true": True, "false": False}
CLIENT, SERVER = "client", "server"


def true_or_false(text: str) -> bool:
    """Return the value of `true` or `false`."""
    if text.lower() not in _VALUES:
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return _VALUES[text.lower()]


def add_switch(to: argparse._ActionsContainer, flag: str, meaning: str, *, default: bool) -> None:
    """Add an option that switches something on or off."""
    text = f"{meaning} (default: {str(default).lower()})"
    to.add_argument(flag, type=true_or_false, nargs="?", const=True, default=default, metavar="true|false", help=text)


class OptionalValue(argparse.Action):
    """An option whose value may be left out; a CommandParser then puts the one it has alone."""

    alone = ""
    known: tuple[str, ...] = ()

    def __call__(
        self,
        _parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        _option: str | None = None,
    ) -> None:
        """Store the value."""
        setattr(namespace, self.dest, values)


class BooleanOption(OptionalValue):
    """An option with the value true or false; alone it means true."""

    alone = "true"
    known = tuple(_VALUES)

    def __init__(self, option_strings: Sequence[str], dest: str, **settings: Any) -> None:  # noqa: ANN401 - argparse's
        settings["help"] = f"{settings.get('help', '')} (alone it means true)"
        super().__init__(option_strings, dest, type=true_or_false, metavar="true|false", **settings)


class DryRunOption(OptionalValue):
    """`--dry-run=client` or `--dry-run=server`; alone it means client."""

    alone = CLIENT
    known = (CLIENT, SERVER)


class ServerDryRunOption(DryRunOption):
    """`--dry-run` of commands that write many objects; alone it means server."""

    alone = SERVER


def add_dry_run(to: argparse._ActionsContainer) -> None:
    """Add `--dry-run`; its value is empty, `client` or `server`."""
    to.add_argument(
        "--dry-run",
        action=DryRunOption,
        default="",
        choices=[CLIENT, SERVER],
        help="client: print what would be sent, and send nothing. server: the API server checks it and stores nothing"
        " (alone it means client)",
    )


def with_values(arguments: Iterable[str], actions: Iterable[argparse.Action]) -> list[str]:
    """Return the arguments with a value behind each option that may do without and has none.

    argparse itself, like Velero's parser, would take the name in `unpause --skip-immediately NAME` for the value.
    """
    options = {
        text: action for action in actions if isinstance(action, OptionalValue) for text in action.option_strings
    }
    words = list(arguments)
    done = list[str]()
    while words:
        word = words.pop(0)
        if word == "--":
            return [*done, word, *words]
        if word in options:
            option = options[word]
            value = words.pop(0) if words and words[0].lower() in option.known else option.alone
            word = f"{word}={value}"
        done.append(word)
    return done
