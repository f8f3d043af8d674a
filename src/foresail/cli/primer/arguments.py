"""The words of `foresail primer`; what they do is imported only when one of them is chosen."""

import argparse
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foresail.cli.options.parser import CommandParser

_WARM_UP = "how long before each fire: 10m, 1h30m, or minutes"


class _Help(argparse.HelpFormatter):
    """Wraps prose, and leaves the lines of examples as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


def add_primer(commands: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add the words of `foresail primer` to the command line."""
    primer = commands.add_parser(
        "primer",
        help="capacity that is warm before a CronJob fires",
        description="Works on Primers, which hold capacity for CronJobs before they fire, and shows what came of it.",
    )
    primer.fill = _fill


def _fill(primer: argparse.ArgumentParser) -> None:
    words = primer.add_subparsers(required=True, metavar="COMMAND")
    _add_create(words)
    _add_reports(words)
    _add_changes(words)
    _add_forecasts(words)


def _add_create(words: Any) -> None:  # noqa: ANN401 - argparse's own is private
    one = _word(words, "create", "make a Primer", ("create", "create"))
    one.add_argument("name", metavar="NAME", help="of the Primer")
    one.add_argument("--cron-job", metavar="NAME", help="of the CronJob (default: that of the Primer)")
    one.add_argument("-l", "--selector", metavar="SELECTOR", help="CronJobs with these labels, instead of one by name")
    _add_how(one)
    one.add_argument("--release-after", metavar="DURATION", help="let go that long after a fire at the latest")
    one.add_argument("--allow-standing", action="store_true", help="hold for more than half of the time, if need be")
    _add_output(one, "table", "json", "yaml", "name")
    one.add_argument("--dry-run", action="store_true", help="print what would be sent, and send nothing")


def _add_reports(words: Any) -> None:  # noqa: ANN401
    one = _word(words, "get", "list Primers: next fire, next warm-up, the last start delays", ("get", "get"))
    _add_choice(one)
    _add_output(one, "table", "json", "yaml", "name")
    one = _word(words, "describe", "the last fires, cold against warm, and what was held", ("describe", "describe"))
    _add_choice(one)
    one = _word(
        words, "explain", "the rules in their order, and the first that holds a CronJob back", ("explain", "explain")
    )
    _add_choice(one)
    _add_zone(one)


def _add_changes(words: Any) -> None:  # noqa: ANN401
    for name, meaning in (("suspend", "hold nothing until they are resumed"), ("resume", "hold capacity again")):
        one = _word(words, name, f"let Primers {meaning}", ("change", name))
        one.add_argument("names", nargs="+", metavar="NAME", help="of Primers")


def _add_forecasts(words: Any) -> None:  # noqa: ANN401
    one = _word(
        words,
        "preview",
        "what a Primer would do, and on which dates not exactly",
        ("preview", "preview"),
    )
    one.add_argument("cron_job", nargs="?", metavar="CRONJOB", help="of the cluster")
    one.add_argument("-f", "--file", metavar="FILE", help="CronJobs in a manifest instead; - is standard input")
    _add_how(one)
    one.add_argument("--count", type=int, default=5, metavar="N", help="how many fires to show (%(default)s)")
    _add_zone(one)
    _add_suggest(words)


def _add_suggest(words: Any) -> None:  # noqa: ANN401
    one = _word(
        words,
        "suggest",
        "rank CronJobs by the time that a Primer would save in a day, with the CPU- and GiB-hours that it would hold; "
        "needs no Primer and no operator",
        ("suggest", "suggest"),
        "foresail primer suggest -A",
        "foresail primer suggest -A -o wide --price-cpu-hour 0.04 --price-memory-gib-hour 0.005",
        "foresail primer suggest -n shop -l tier=batch -o yaml | kubectl apply -f -",
    )
    one.add_argument("-A", "--all-namespaces", action="store_true", help="those of every namespace")
    one.add_argument("-l", "--selector", metavar="SELECTOR", help="CronJobs with these labels")
    one.add_argument(
        "--at-least", type=int, default=5, metavar="SECONDS", help="leave out shorter delays (%(default)s)"
    )
    for flag, what in (("--price-cpu-hour", "CPU"), ("--price-memory-gib-hour", "GiB of memory")):
        text = f"what an hour of one {what} costs: adds the cost in a day, in that currency"
        one.add_argument(flag, type=_price, default=0.0, metavar="PRICE", help=text)
    one.add_argument(
        "--allow-standing",
        action="store_true",
        help="include Primers that hold capacity for more than half of the time in -o yaml, json and name",
    )
    _add_output(one, "table", "wide", "json", "yaml", "name")
    _add_zone(one)


def _price(text: str) -> float:
    try:
        price = float(text)
    except ValueError:
        price = -1.0
    if not 0 <= price < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no price: give a number such as 0.04")
    return price


def _word(
    words: Any,  # noqa: ANN401
    name: str,
    help_text: str,
    run: tuple[str, str],
    *examples: str,
) -> argparse.ArgumentParser:
    one: argparse.ArgumentParser = words.add_parser(
        name,
        help=help_text,
        description=help_text,
        epilog="\n  ".join(("examples:", *examples)),
        formatter_class=_Help,
    )
    where = one.add_argument_group("where")
    where.add_argument("-n", "--namespace", help="of the Primers (default: that of the kube context)")
    where.add_argument("--kubeconfig", help="the kubeconfig to use")
    where.add_argument("--context", "--kubecontext", help="the context of the kubeconfig")
    one.set_defaults(run=_command(*run), all_namespaces=False)
    return one


def _add_choice(one: argparse.ArgumentParser) -> None:
    one.add_argument("names", nargs="*", metavar="NAME", help="of Primers; all of them if none is given")
    one.add_argument("-A", "--all-namespaces", action="store_true", help="those of every namespace")


def _add_how(one: argparse.ArgumentParser) -> None:
    one.add_argument("--warm-up", required=True, metavar="DURATION", help=_WARM_UP)
    one.add_argument("--method", choices=["Placeholder", "CronJob"], help="(default: Placeholder)")


def _add_output(one: argparse.ArgumentParser, *forms: str) -> None:
    one.add_argument("-o", "--output", choices=forms, default="table", help="(%(default)s)")


def _add_zone(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "--zone", default="UTC", help="of kube-controller-manager's clock, for CronJobs without one (%(default)s)"
    )


def _command(module: str, function: str) -> Callable[[argparse.Namespace], int]:
    def run(chosen: argparse.Namespace) -> int:
        code: int = getattr(import_module(f"foresail.cli.primer.{module}"), function)(chosen)
        return code

    return run
