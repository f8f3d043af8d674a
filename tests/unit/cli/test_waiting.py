"""How long a command waits, and the message when Ctrl-C ends it."""

import pytest

from foresail.cli.errors import CommandError
from foresail.cli.options.values import deadline
from foresail.cli.output.messages import interruptible


def test_a_timeout_is_a_length_of_time() -> None:
    assert deadline(None) is None
    assert deadline("0s") is not None
    for text in ("soon", "-1h"):
        with pytest.raises(CommandError, match=f"--timeout: '{text}' is not a duration"):
            deadline(text)


def test_ctrl_c_ends_the_waiting_with_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    def tired() -> int:
        raise KeyboardInterrupt

    assert interruptible(lambda: 3, "It goes on.") == 3
    assert capsys.readouterr().err == ""
    assert interruptible(tired, "It goes on.") == 130
    assert capsys.readouterr().err == "\nIt goes on.\n"
