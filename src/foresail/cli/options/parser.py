"""The parser of every command: exact options, a suggestion for a misspelt word, options filled in late."""

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn

from foresail.cli.errors import USAGE

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


_REQUIRED = re.compile(r"the following arguments are required: (.*)")
_ONE_REQUIRED = re.compile(r"one of the arguments (.+) is required")
_NUMBER = re.compile(r"invalid int value: ('.*')")
_OF_OPTION = re.compile(r"argument ([^:]+): ")
_SHORT_INDENT = "\n    "
_VALUE_ON_NEXT_LINE = re.compile(r" (--[\w-]+)\n( +)(?=[A-Z])")  # so Python 3.11 and 3.12 break a required option
_USUAL_COLUMNS = 80
_MARGIN = 2  # columns of the terminal that argparse leaves free


_Verbs = argparse._SubParsersAction  # noqa: SLF001 - argparse has no public name for it


class HelpFormatter(argparse.HelpFormatter):
    """Wraps paragraphs and leaves lines alone that are written as lines; the layout is that of Python 3.13."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:  # noqa: ANN401 - argparse's
        super().__init__(*arguments, **{"width": _columns() - _MARGIN, **settings})

    def add_argument(self, action: argparse.Action) -> None:
        """Add an argument; older versions forget the indent of commands, and break lines after long names."""
        super().add_argument(action)
        for subaction in self._iter_indented_subactions(action):
            length = len(self._format_action_invocation(subaction)) + self._current_indent
            self._action_max_length = max(self._action_max_length, length)

    def _format_usage(self, *settings: Any) -> str:  # noqa: ANN401 - argparse's
        # argparse aligns options below the end of the command, where a long one may not fit.
        text = super()._format_usage(*settings)
        text = _VALUE_ON_NEXT_LINE.sub(r"\n\2\1 ", text)
        is_too_wide = max(map(len, text.splitlines()), default=0) > self._width + _MARGIN
        return re.sub(r"\n +", _SHORT_INDENT, text) if is_too_wide else text

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        # Older versions repeat the value after each spelling.
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"


def _columns() -> int:
    """Return the width of the terminal as shutil does, which imports bz2 and lzma; argparse asks for each option."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    try:
        return os.get_terminal_size(1).columns or _USUAL_COLUMNS
    except OSError:
        return _USUAL_COLUMNS


def examples(*commands: str) -> str:
    """Return the end of a help text: one example on each line."""
    return "examples:\n" + "\n".join(f"  {command}" for command in commands)


class CommandParser(argparse.ArgumentParser):
    """A parser that refuses abbreviations, suggests the right word and can be filled just before it parses."""

    fill: Callable[[argparse.ArgumentParser], None] | None = None
    """Adds the options and verbs; every command would pay for them, and few need them."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:  # noqa: ANN401 - argparse's
        defaults = {"allow_abbrev": False, "formatter_class": HelpFormatter}
        super().__init__(*arguments, **{**defaults, **settings})

    def add_subparsers(self, **settings: Any) -> Any:  # noqa: ANN401 - argparse's
        """Add verbs under this name; argparse would format a usage to know it, which imports bz2 and lzma."""
        return super().add_subparsers(**{"prog": self.prog, **settings})

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # noqa: ANN401 - argparse's
        """Parse as usual, with all options in place; refuse unknown options under the usage of this command."""
        self.fill_now()
        words = sys.argv[1:] if args is None else list(args)
        if words and self.verbs() and words[0].startswith("-") and words[0] not in self._option_string_actions:
            self._refuse(words[0])
        document, unknown = super().parse_known_args(with_values(words, self._actions), namespace)
        if unknown:
            self._refuse(unknown[0])
        return document, unknown

    def fill_now(self) -> None:
        """Add the options and verbs that were left for later."""
        fill = self.fill
        self.fill = None
        if fill is not None:
            fill(self)

    def get_actions(self) -> list[argparse.Action]:
        """Return its options and arguments."""
        return list(self._actions)

    def commands(self, words: str = "") -> "Iterator[tuple[str, CommandParser]]":
        """Yield each command that help lists with its parser, filled, itself first."""
        self.fill_now()
        yield words or self.prog, self
        listed = set(self.verbs())
        for action in self._actions:
            if isinstance(action, _Verbs):
                for name, one in action.choices.items():
                    if name in listed:
                        yield from one.commands(f"{words or self.prog} {name}")

    def error(self, message: str) -> NoReturn:
        """Print what is wrong in one line, and the usage of this command in another."""
        one_of = _ONE_REQUIRED.fullmatch(message)
        if one_of:
            names = (word.partition("/")[0] for word in one_of[1].split())
            self._end(f"missing {' or '.join(names)}")
        missing = _REQUIRED.fullmatch(message)
        if missing:
            verbs = ", ".join(self.verbs())
            self._end(f"missing {missing[1]}", f"commands: {verbs}" if verbs and missing[1] == "COMMAND" else "")
        self._end(_NUMBER.sub(r"\1 is not a whole number", _OF_OPTION.sub(r"\1: ", message, count=1)))

    def _check_value(self, action: argparse.Action, value: Any) -> None:  # noqa: ANN401
        """Refuse an unknown command or value with the nearest known one."""
        if action.choices is None or value in action.choices:
            return
        if isinstance(action, _Verbs):
            verbs = self.verbs()
            self._end(f"unknown command {value!r}", _nearest(value, verbs) or f"commands: {', '.join(verbs)}")
        name = "/".join(action.option_strings) or str(action.metavar or action.dest)
        allowed = [str(choice) for choice in action.choices]
        self._end(f"{name}: {str(value)!r} is not one of {', '.join(allowed)}", _nearest(str(value), allowed))

    def _refuse(self, word: str) -> NoReturn:
        if word == "-" or not word.startswith("-"):
            self._end(f"unexpected argument {word!r}", "quote a value that contains spaces")
        name = word.partition("=")[0]
        known = [text for action in self._actions for text in action.option_strings if action.help != argparse.SUPPRESS]
        near = _nearest(name, [text for text in known if text.startswith("--")])
        after = "write options after the command" if self.verbs() else ""
        self._end(f"unknown option {name!r}", near or after)

    def verbs(self) -> list[str]:
        """Return the commands of this parser that its help lists."""
        groups = (action for action in self._actions if isinstance(action, _Verbs))
        return [verb.dest for action in groups for verb in action._choices_actions]  # noqa: SLF001 - the only place that has them

    def _end(self, problem: str, hint: str = "") -> NoReturn:
        lines = [f"error: {problem}", *([f"hint: {hint}"] if hint else []), f"usage: {self._short_usage()}"]
        print("\n".join(lines), file=sys.stderr)
        sys.exit(USAGE)

    def _short_usage(self) -> str:
        """Return the usage in one line: without the options that may be left out."""
        groups = [group._group_actions for group in self._mutually_exclusive_groups if group.required]  # noqa: SLF001 - as above
        required = [_option(action) for action in self._actions if action.option_strings and action.required]
        required += [f"({' | '.join(map(_option, actions))})" for actions in groups]
        places = [_place(action) for action in self._actions if not action.option_strings]
        return " ".join([self.prog, *required, *places, "[OPTIONS]", "  (see --help)"])


def _option(action: argparse.Action) -> str:
    value = action.metavar or action.dest.upper()
    name = next((string for string in action.option_strings if string.startswith("--")), action.option_strings[0])
    return f"{name} {value}"


def _place(action: argparse.Action) -> str:
    name = str(action.metavar or action.dest)
    return {"*": f"[{name} ...]", "+": f"{name} [{name} ...]", "?": f"[{name}]"}.get(str(action.nargs), name)


def _nearest(word: str, known: Iterable[str]) -> str:
    """Return a question with the known word that is most like this one, or nothing."""
    from difflib import get_close_matches  # noqa: PLC0415 - only who misspells pays for it

    words = list(known)
    longer = [other for other in words if other.startswith(word)]
    near = longer if len(longer) == 1 else get_close_matches(word, words, n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else ""
