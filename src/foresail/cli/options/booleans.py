"""Options with the value true or false; without a value they mean true, as Velero's do."""

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

_VALUES = {"true": True, "false": False}


def true_or_false(text: str) -> bool:
    """Return the value of `true` or `false`."""
    if text.lower() not in _VALUES:
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return _VALUES[text.lower()]


def add_switch(to: argparse._ActionsContainer, flag: str, meaning: str, *, default: bool) -> None:
    """Add an option that switches something on or off."""
    text = f"{meaning} (default: {str(default).lower()})"
    to.add_argument(flag, type=true_or_false, nargs="?", const=True, default=default, metavar="true|false", help=text)


class BooleanOption(argparse.Action):
    """An option with the value true or false; a CommandParser makes the value optional."""

    def __init__(self, option_strings: Sequence[str], dest: str, **settings: Any) -> None:  # noqa: ANN401 - argparse's
        settings["help"] = f"{settings.get('help', '')} (alone it means true)"
        super().__init__(option_strings, dest, type=true_or_false, metavar="true|false", **settings)

    def __call__(
        self,
        _parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        _option: str | None = None,
    ) -> None:
        """Store the value."""
        setattr(namespace, self.dest, values)


def with_values(arguments: Iterable[str] | None, options: set[str]) -> list[str]:
    """Return the arguments with `=true` behind each of these options that has no value.

    argparse itself, like Velero's parser, would take the name in `unpause --skip-immediately NAME` for the value.
    """
    words, done = list(arguments or ()), list[str]()
    while words:
        word = words.pop(0)
        if word == "--":
            return [*done, word, *words]
        if word in options:
            value = words.pop(0) if words and words[0].lower() in _VALUES else "true"
            word = f"{word}={value}"
        done.append(word)
    return done
