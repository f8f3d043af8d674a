"""Every command with its arguments and options, from the parsers themselves."""

import argparse
from collections.abc import Iterator

from docs.generate.tables import code, table
from foresail.cli.main import parser

_TOP = """# Commands

What `foresail COMMAND --help` says, for all of them.
As `kubectl foresail` the same commands are a plugin of kubectl.
Options are written in full, after the command; an abbreviation such as `--out` is refused.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | a problem was found, or the cluster refused a request |
| 2 | wrong usage: an unknown option, or a value that makes no sense |
| 3 | no answer: no kubeconfig, no valid credentials, or no API server |
| 130 | interrupted with Ctrl-C |
"""


def page() -> str:
    """Return the page."""
    leaves = ((words, one) for words, one in parser().commands() if not one.verbs())
    return "\n".join([_TOP, *(_section(words, one) for words, one in leaves)])


def options(one: argparse.ArgumentParser) -> Iterator[tuple[str, list[argparse.Action]]]:
    """Return the options of a command by the title of their group; empty for those without one."""
    for group in one._action_groups:
        found = [each for each in group._group_actions if each.option_strings and each.dest != "help"]
        if found:
            yield "" if group.title == "options" else str(group.title), found


def option(action: argparse.Action) -> tuple[str, str]:
    """Return an option as it is written, and what it means."""
    value = action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
    takes = "" if action.nargs == 0 else f" [{value}]" if action.nargs == "?" else f" {value}"
    meaning = (action.help or "") % {"default": action.default}
    return code(", ".join(action.option_strings) + takes), meaning + (" (required)" if action.required else "")


def _section(words: str, one: argparse.ArgumentParser) -> str:
    places = [each for each in one._actions if not each.option_strings]
    usage = " ".join([words, *(_place(each) for each in places), "[options]"])
    rows = [(code(str(each.metavar or each.dest)), each.help or "") for each in places if each.help]
    rows += [option(each) for _, actions in options(one) for each in actions]
    listed = "\n" + table(("argument or option", "meaning"), rows) if rows else ""
    shown = f"\n\n{one.epilog}" if one.epilog else ""
    return f"## {words}\n\n{one.description}\n\n```text\n{usage}{shown}\n```\n{listed}"


def _place(action: argparse.Action) -> str:
    name = str(action.metavar or action.dest)
    match action.nargs:
        case "*":
            return f"[{name} ...]"
        case "+":
            return f"{name} [{name} ...]"
        case "?":
            return f"[{name}]"
        case _:
            return name
