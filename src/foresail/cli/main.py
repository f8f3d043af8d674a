"""The entry point of the `foresail` command: one parser, one exit code."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

from foresail import TAGLINE, __version__
from foresail.cli.errors import INTERRUPTED, CommandError
from foresail.cli.options.parser import CommandParser, examples
from foresail.cli.output.messages import guard_streams

_EXAMPLES = (
    "foresail doctor",
    "foresail schedule get",
    "foresail backup create nightly --wait",
    "foresail cron next '0 3 * * *' --zone Europe/Berlin",
)
_EXIT_CODES = """exit codes:
  0    done
  1    a problem was found, or the cluster refused a request
  2    wrong usage: an unknown option, or a value that makes no sense
  3    no answer: no kubeconfig, no valid credentials, or no API server
  130  interrupted with Ctrl-C"""


_COMMANDS = (
    "cron",
    "schedule",
    "policy",
    "backup",
    "rollback",
    "plan",
    "recovery-key",
    "location",
    "coverage",
    "report",
    "check",
    "protection",
    "console",
    "doctor",
    "primer",
    "install",
    "operator",
    "version",
    "completion",
    "hold",
    "canary",
)
"""The commands in the order of the help."""

_ADDED_WITH = {"restore": "backup", "uninstall": "install"}
"""The commands whose words are those of another one too."""


def parser(only: str = "") -> CommandParser:
    """Return the parser of the whole command line, or of one command: to import the words of all costs time."""
    top = CommandParser(
        prog="foresail",
        description=TAGLINE,
        epilog=f"{examples(*_EXAMPLES)}\n\n{_EXIT_CODES}",
    )
    top.add_argument("--version", action="version", version=f"foresail {__version__}")
    top.set_defaults(run=None)
    commands: Any = top.add_subparsers(metavar="COMMAND")
    for command in _COMMANDS:
        if only in ("", command):
            _add(command, commands)
    return top


def _add(command: str, commands: Any) -> None:  # noqa: ANN401 - argparse's own is private
    add: Callable[[Any], None]
    match command:
        case "cron":
            from foresail.cli.cron.arguments import add_cron as add
        case "schedule":
            from foresail.cli.schedule.arguments import add_schedule as add
        case "policy":
            from foresail.cli.policy.arguments import add_policy as add
        case "backup":
            from foresail.cli.tenant.arguments import add_tenant as add
        case "rollback":
            from foresail.cli.rollback.arguments import add_rollback as add
        case "plan":
            from foresail.cli.restore_plan.arguments import add_plan as add
        case "recovery-key":
            from foresail.cli.recovery_key.arguments import add_recovery_key as add
        case "location":
            from foresail.cli.location.arguments import add_location as add
        case "coverage":
            from foresail.cli.coverage.arguments import add_coverage as add
        case "report":
            from foresail.cli.console import add_report as add
        case "check":
            from foresail.cli.check.arguments import add_check as add
        case "protection":
            from foresail.cli.protection.arguments import add_protection as add
        case "primer":
            from foresail.cli.primer.arguments import add_primer as add
        case _:
            _add_own(command, commands)
            return
    add(commands)


def _add_own(command: str, commands: Any) -> None:  # noqa: ANN401
    """Add a command about Foresail itself."""
    add: Callable[[Any], None]
    match command:
        case "console":
            from foresail.cli.console import add_console as add
        case "doctor":
            from foresail.cli.doctor.arguments import add_doctor as add
        case "install":
            from foresail.cli.install.arguments import add_install as add
        case "operator":
            from foresail.cli.operator import add_operator as add
        case "version":
            from foresail.cli.version import add_version as add
        case "completion":
            from foresail.cli.completion import add_completion as add
        case "hold":
            from foresail.cli.in_pods import add_hold as add
        case "canary":
            from foresail.cli.in_pods import add_canary as add
        case _:
            raise NotImplementedError(command)
    add(commands)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    guard_streams()
    words = sys.argv[1:] if arguments is None else arguments
    command = _ADDED_WITH.get(words[0], words[0]) if words else ""
    top = parser(command if command in _COMMANDS else "")
    args = top.parse_args(words)
    if args.run is None:
        top.print_help()
        return 0
    try:
        code: int = args.run(args)
        sys.stdout.flush()
    except CommandError as error:
        print(error, file=sys.stderr)
        return error.code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader, `head` for example, has seen enough
        sys.stdout = None
        return 0
    return code
