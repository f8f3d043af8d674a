"""Every --help of backup, restore, schedule and policy has examples, and each example can be parsed."""

import argparse
import shlex

import pytest

from foresail.cli.main import parser
from foresail.cli.options.parser import CommandParser


def verbs(*groups: str) -> list[tuple[str, str]]:
    """Return every verb of the groups with its help text."""
    found = []
    for group in groups:
        one = _choices(parser())[group]
        assert isinstance(one, CommandParser)
        one.fill_now()
        found += [(f"{group} {verb}", each.format_help()) for verb, each in _choices(one).items()]
        found.append((group, one.format_help()))
    return found


def _choices(of: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    (action,) = [each for each in of._actions if isinstance(each, argparse._SubParsersAction)]  # noqa: SLF001
    return dict(action.choices)


VERBS = verbs("backup", "restore", "rollback", "schedule", "policy")


def test_all_verbs_are_walked() -> None:
    assert len(VERBS) >= 30


@pytest.mark.parametrize(("verb", "text"), VERBS, ids=[verb for verb, _ in VERBS])
def test_every_help_has_examples_that_can_be_parsed(verb: str, text: str) -> None:
    _, _, shown = text.partition("examples:\n")
    lines = [line.strip() for line in shown.splitlines() if line.strip()]
    assert lines, f"foresail {verb} --help has no examples"
    for line in lines:
        program, *words = shlex.split(line.partition(" > ")[0])
        assert program == "foresail"
        assert line.startswith(f"foresail {verb}")
        assert parser().parse_args(words).run is not None
