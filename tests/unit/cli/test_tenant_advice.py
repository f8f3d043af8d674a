"""Every reason that a tenant can meet, with its cause and the next step."""

import re
import shlex

import pytest

from foresail.cli.main import parser
from foresail.cli.tenant.advice import ADVICE, UNSEEN, Advice, advice_for, sentence
from foresail.plan import Key
from foresail.selfservice.families import BACKUPS, RESTORES
from foresail.selfservice.reasons import Reason

KEY = Key("shop", "daily")


def test_every_reason_has_advice() -> None:
    assert set(ADVICE) == set(Reason)


def test_advice_names_the_object_and_a_restore_has_a_step_of_its_own() -> None:
    advice = advice_for("PolicyViolation")
    assert sentence(advice, BACKUPS, KEY) == (
        "The policy of namespace shop does not allow this backup. Correct the field that the message names, "
        "with kubectl edit nonadminbackup daily -n shop. Or ask a cluster administrator to allow it; the "
        "backup then starts automatically"
    )
    assert sentence(advice, RESTORES, KEY).endswith("then run foresail restore retry daily -n shop")


@pytest.mark.parametrize("advice", [*ADVICE.values(), UNSEEN])
def test_each_has_a_cause_and_a_next_step_in_plain_sentences(advice: Advice) -> None:
    for family in (BACKUPS, RESTORES):
        text = sentence(advice, family, KEY)
        cause, separator, step = text.partition(". ")
        assert separator
        assert len(cause.split()) >= 3
        assert len(step.split()) >= 5
        assert not re.search(r"[.!?]$|[{}]|\n", text)


@pytest.mark.parametrize("advice", ADVICE.values(), ids=[each.value for each in ADVICE])
def test_every_command_that_is_named_can_be_given(advice: Advice) -> None:
    for family in (BACKUPS, RESTORES):
        text = sentence(advice, family, KEY)
        for words in re.findall(r"foresail ((?:backup|restore|location) .*?)(?=[,;]|\. |$)", text):
            given = re.split(r" and | or ", words)[0]
            assert callable(parser().parse_args(shlex.split(given)).run)


def test_a_reason_of_a_later_operator_is_left_to_its_message() -> None:
    assert sentence(advice_for("Moonlit"), BACKUPS, KEY).startswith("Moonlit. Follow the message")
    assert advice_for("") is UNSEEN
