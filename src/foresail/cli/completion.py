"""`foresail completion`: a script by which a shell completes the words of this command line."""

import argparse
from typing import TYPE_CHECKING

from foresail.cli.options.parser import examples

if TYPE_CHECKING:
    from foresail.cli.options.parser import CommandParser

SHELLS = ("bash", "zsh", "fish", "powershell")
_NOTHING = {"zsh": "{true}"}  # without it zsh shows a message in place of options that it could complete
_EXAMPLES = (
    "foresail completion bash > ~/.local/share/bash-completion/completions/foresail",
    'foresail completion zsh > "${fpath[1]}/_foresail"',
    "foresail completion fish > ~/.config/fish/completions/foresail.fish",
    "foresail completion powershell >> $PROFILE",
)


def add_completion(commands: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add `foresail completion` to the command line."""
    one = commands.add_parser(
        "completion",
        help="print a script that completes commands and options in your shell",
        description="Prints a script that completes commands, options and their values. The script is static: it starts"
        " nothing when you press TAB. Generate it again after an upgrade.",
        epilog=examples(*_EXAMPLES),
    )
    one.add_argument("shell", metavar="SHELL", choices=SHELLS, help=", ".join(SHELLS))
    one.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    print(script(args.shell))
    return 0


def script(shell: str) -> str:
    """Return the script for a shell."""
    import shtab  # noqa: PLC0415 - no other command needs it

    from foresail.cli.main import parser  # noqa: PLC0415 - it imports this module

    top = parser()
    for _, one in top.commands():
        for action in one.get_actions():
            if action.metavar == "FILE" or action.dest == "kubeconfig":
                action.complete = shtab.FILE  # type: ignore[attr-defined]
            elif not action.option_strings and not action.choices:
                action.complete = _NOTHING  # type: ignore[attr-defined]
    return str(shtab.complete(top, shell))
