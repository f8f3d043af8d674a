"""Options that say yes or no, and mean yes without a value, as Velero's do."""

import argparse
from collections.abc import Sequence
from typing import Any

_WORDS = {"true": True, "false": False}


def yes_or_no(text: str) -> bool:
    """Return what `true` or `false` means."""
    if text.lower() not in _WORDS:
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return _WORDS[text.lower()]


def add_switch(to: argparse._ActionsContainer, flag: str, meaning: str, *, default: bool) -> None:
    """Add an option that switches something on or off."""
    text = f"{meaning} (default: {str(default).lower()})"
    to.add_argument(flag, type=yes_or_no, nargs="?", const=True, default=default, metavar="true|false", help=text)


class YesOrNo(argparse.Action):
    """An option with the value true or false; the parser must be a Verb, or the value is not optional."""

    def __init__(self, option_strings: Sequence[str], dest: str, **settings: Any) -> None:  # noqa: ANN401 - argparse's
        settings["help"] = f"{settings.get('help', '')} (alone it means true)"
        super().__init__(option_strings, dest, type=yes_or_no, metavar="true|false", **settings)

    def __call__(
        self,
        _parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        _option: str | None = None,
    ) -> None:
        """Keep the value."""
        setattr(namespace, self.dest, values)


class Verb(argparse.ArgumentParser):
    """A parser whose yes-or-no options may stand without a value, and then leave the name behind them alone.

    argparse itself, like Velero's parser, would take the name in `unpause --skip-immediately NAME` for the value.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:  # noqa: ANN401 - argparse's
        super().__init__(*arguments, **{"allow_abbrev": False, **settings})

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # noqa: ANN401
        """Parse as usual, with `=true` put where it is meant."""
        options = {text for each in self._actions if isinstance(each, YesOrNo) for text in each.option_strings}
        return super().parse_known_args(_completed(list(args or ()), options), namespace)


def _completed(words: list[str], options: set[str]) -> list[str]:
    done: list[str] = []
    while words:
        word = words.pop(0)
        if word == "--":
            return [*done, word, *words]
        if word in options:
            value = words.pop(0) if words and words[0].lower() in _WORDS else "true"
            word = f"{word}={value}"
        done.append(word)
    return done
