"""The entry point of the `foresail` command: one parser, one exit code."""

import sys
from collections.abc import Sequence
from typing import Any

from foresail import TAGLINE, __version__
from foresail.cli.check.arguments import add_check
from foresail.cli.completion import add_completion
from foresail.cli.console import add_console, add_report
from foresail.cli.coverage.arguments import add_coverage
from foresail.cli.cron.arguments import add_cron
from foresail.cli.doctor.arguments import add_doctor
from foresail.cli.errors import INTERRUPTED, CommandError
from foresail.cli.in_pods import add_canary, add_hold
from foresail.cli.install.arguments import add_install
from foresail.cli.location.arguments import add_location
from foresail.cli.operator import add_operator
from foresail.cli.options.parser import CommandParser, examples
from foresail.cli.output.messages import guard_streams
from foresail.cli.policy.arguments import add_policy
from foresail.cli.primer.arguments import add_primer
from foresail.cli.recovery_key.arguments import add_recovery_key
from foresail.cli.restore_plan.arguments import add_plan
from foresail.cli.schedule.arguments import add_schedule
from foresail.cli.tenant.arguments import add_tenant
from foresail.cli.version import add_version

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


def parser() -> CommandParser:
    """Return the parser of the whole command line."""
    top = CommandParser(
        prog="foresail",
        description=TAGLINE,
        epilog=f"{examples(*_EXAMPLES)}\n\n{_EXIT_CODES}",
    )
    top.add_argument("--version", action="version", version=f"foresail {__version__}")
    top.set_defaults(run=None)
    commands: Any = top.add_subparsers(metavar="COMMAND")
    add_cron(commands)
    add_schedule(commands)
    add_policy(commands)
    add_tenant(commands)
    add_plan(commands)
    add_recovery_key(commands)
    add_location(commands)
    add_coverage(commands)
    add_report(commands)
    add_check(commands)
    add_console(commands)
    add_doctor(commands)
    add_primer(commands)
    add_install(commands)
    add_operator(commands)
    add_version(commands)
    add_completion(commands)
    add_hold(commands)
    add_canary(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    guard_streams()
    top = parser()
    args = top.parse_args(arguments)
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
