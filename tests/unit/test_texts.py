"""Every text that a person reads has short sentences."""

import re

import pytest

from docs import texts
from foresail.primers.reasons import Reason as PrimerReason
from foresail.proof.checks.reasons import Reason as CheckReason
from foresail.proof.reasons import Reason as CoverageReason
from foresail.protection.reasons import Reason as ProtectionReason
from foresail.rollback.reasons import Reason as RollbackReason
from foresail.schedules.reasons import Reason as ScheduleReason
from foresail.selfservice.reasons import Reason as SelfServiceReason

MOST_WORDS = 30


def long_sentences(text: str) -> list[str]:
    """Return the sentences with more words than allowed; a line break ends a sentence too."""
    return [each for each in re.split(r"(?<=[.!?])\s+|\n", text) if len(each.split()) > MOST_WORDS]


def test_no_sentence_is_too_long() -> None:
    found = [f"{source}: {each}" for source, text in texts.every_text() for each in long_sentences(text)]
    assert found == []


@pytest.mark.parametrize("text", ["a " * 31, "Short. " + "a " * 31 + "end.", "short\n" + "a " * 31])
def test_a_long_sentence_is_found(text: str) -> None:
    assert len(long_sentences(text)) == 1


def test_every_help_is_walked() -> None:
    sources = {each.source for each in texts.helps()}
    for command in ("foresail doctor", "foresail backup create", "foresail operator run", "foresail cron shift"):
        assert f"{command} --help" in sources
    assert "foresail install --help, self_service" in sources


def test_every_reason_is_walked() -> None:
    sources = {each.source for each in texts.reason_texts()}
    for module, reasons in (
        ("schedules", ScheduleReason),
        ("primers", PrimerReason),
        ("proof", CoverageReason),
        ("proof.checks", CheckReason),
        ("protection", ProtectionReason),
        ("rollback", RollbackReason),
    ):
        assert {f"foresail.{module}.reasons.{each.name}" for each in reasons} <= sources
    assert {f"advice for {each}" for each in SelfServiceReason} <= sources


def test_messages_are_walked_as_they_are_put_together() -> None:
    source = '''
"""A module."""
CONSTANT = "a constant"

def made(name):
    """Return it."""
    text = f"the object {name} is old"
    raise ValueError(f"{text}: update it", lambda: "a hint")
'''
    assert [re.sub(r"\Wname\W", "NAME", text) for _, text in texts.literals(source)] == [
        "a constant",
        "the object NAME is old",
        "the object NAME is old: update it",
        "a hint",
    ]


def test_metrics_and_alerts_are_walked() -> None:
    assert "foresail_selfservice_waiting" in {each.source for each in texts.metric_helps()}
    assert "ForesailStoreStale, description" in {each.source for each in texts.alert_texts()}
