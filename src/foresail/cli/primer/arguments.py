"""The verbs of `foresail primer`; what they do is imported only when one of them is used."""

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any

from foresail.cli.options.parser import add_dry_run, examples
from foresail.cli.options.shared import add_cluster, add_object_output, add_output, add_selection
from foresail.cli.options.values import positive, whole_number

if TYPE_CHECKING:
    from foresail.cli.options.parser import CommandParser

_WARM_UP = "how long before each fire: 10m, 1h30m, or minutes"


def add_primer(commands: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add the verbs of `foresail primer` to the command line."""
    primer = commands.add_parser(
        "primer",
        help="manage Primers, which warm capacity for CronJobs",
        description="Manages Primers, which hold capacity for CronJobs before they fire, and reports start delays.",
        epilog=examples(
            "foresail primer suggest -A",
            "foresail primer create report -n shop --warm-up 10m",
            "foresail primer describe report -n shop",
        ),
    )
    primer.fill = _fill


def _fill(primer: argparse.ArgumentParser) -> None:
    verbs = primer.add_subparsers(required=True, metavar="COMMAND")
    _add_create(verbs)
    _add_reports(verbs)
    _add_changes(verbs)
    _add_delete(verbs)
    _add_wait(verbs)
    _add_preview(verbs)
    _add_suggest(verbs)


def _add_create(verbs: Any) -> None:  # noqa: ANN401 - argparse's own is private
    one = _verb(
        verbs,
        "create",
        "create a Primer",
        "foresail primer create report -n shop --warm-up 10m",
        "foresail primer create nightly -n shop -l tier=batch --warm-up 15m",
        "foresail primer create report -n shop --warm-up 10m -o yaml > primer.yaml",
    )
    one.add_argument("name", metavar="NAME", help="name of the Primer")
    one.add_argument("--cron-job", metavar="NAME", help="name of the CronJob (default: the name of the Primer)")
    one.add_argument("-l", "--selector", metavar="SELECTOR", help="CronJobs with these labels, instead of one by name")
    _add_how(one)
    one.add_argument(
        "--release-after", metavar="DURATION", help="maximum time to hold capacity after the job is due (default: 5m)"
    )
    one.add_argument(
        "--allow-standing", action="store_true", help="allow capacity to be held for more than half of the time"
    )
    one.add_argument("--force", action="store_true", help="create it even if it would hold no capacity")
    add_object_output(one, "json, yaml, jsonpath: print the object and send nothing; needs no cluster")
    add_dry_run(one)
    one.set_defaults(zone="UTC")


def _add_reports(verbs: Any) -> None:  # noqa: ANN401
    one = _verb(
        verbs,
        "get",
        "list Primers with next fire, median cold and warm start delays, and blocking reason",
        "foresail primer get",
        "foresail primer get -A -o wide",
        "foresail primer get report -n shop -o jsonpath={.status.nextFire}",
    )
    add_selection(one, "Primers, or cronjob/NAME of an annotated CronJob")
    add_object_output(one)
    one = _verb(
        verbs,
        "describe",
        "show the last fires, cold and warm, and the held capacity",
        "foresail primer describe report -n shop",
        "foresail primer describe -A -l tier=batch",
    )
    add_selection(one, "Primers, or cronjob/NAME of an annotated CronJob")
    one = _verb(
        verbs,
        "explain",
        "evaluate the rules in their order, and show the first that blocks a CronJob",
        "foresail primer explain report -n shop",
        "foresail primer explain -A",
        "foresail primer explain report -n shop -o json",
    )
    add_selection(one, "Primers, or cronjob/NAME of an annotated CronJob")
    add_output(one, "table", "json", "yaml")
    _add_zone(one)


def _add_changes(verbs: Any) -> None:  # noqa: ANN401
    for name, meaning in (
        ("suspend", "suspend Primers: no capacity is held until they are resumed"),
        ("resume", "resume Primers: capacity is held again"),
    ):
        one = _verb(
            verbs,
            name,
            meaning,
            f"foresail primer {name} report -n shop",
            f"foresail primer {name} -A -l tier=batch",
            f"foresail primer {name} --all -n shop",
        )
        add_selection(one, "Primers", "all Primers of the namespace, or with -A of the cluster")
        add_dry_run(one)
        add_object_output(one)


def _add_delete(verbs: Any) -> None:  # noqa: ANN401
    one = _verb(
        verbs,
        "delete",
        "delete Primers and release their capacity",
        "foresail primer delete report -n shop",
        "foresail primer delete -n shop -l tier=batch --yes",
        "foresail primer delete -A --all --dry-run",
    )
    add_selection(one, "Primers", "all Primers of the namespace, or with -A of the cluster")
    one.add_argument(
        "-y", "--yes", "--confirm", dest="confirm", action="store_true", help="do not ask for confirmation"
    )
    add_dry_run(one)
    add_object_output(one)


def _add_wait(verbs: Any) -> None:  # noqa: ANN401
    one = _verb(
        verbs,
        "wait",
        "wait until capacity is held for the next fire, or until the next run has started",
        "foresail primer wait report -n shop",
        "foresail primer wait report -n shop --for fired --timeout 30m",
    )
    one.add_argument(
        "names", nargs="+", metavar="NAME", help="names of Primers, or cronjob/NAME of an annotated CronJob"
    )
    one.add_argument(
        "--for",
        dest="event",
        choices=["warm", "fired"],
        default="warm",
        help="warm: capacity is held on nodes; fired: a run has started, and its start delay is printed (%(default)s)",
    )
    one.add_argument("--timeout", metavar="DURATION", help="maximum time to wait, such as 30m (default: no limit)")


def _add_preview(verbs: Any) -> None:  # noqa: ANN401
    one = _verb(
        verbs,
        "preview",
        "show what a Primer would do, and on which dates it is not exact",
        "foresail primer preview report -n shop --warm-up 10m",
        "foresail primer preview -f cronjob.yaml --warm-up 10m --zone Europe/Berlin",
    )
    one.add_argument("cron_job", nargs="?", metavar="CRONJOB", help="names of CronJobs in the cluster")
    one.add_argument("-f", "--file", metavar="FILE", help="read CronJobs from a manifest; - is standard input")
    _add_how(one)
    one.add_argument("--count", type=positive, default=5, metavar="N", help="number of fires to show (%(default)s)")
    _add_zone(one)


def _add_suggest(verbs: Any) -> None:  # noqa: ANN401
    one = _verb(
        verbs,
        "suggest",
        "rank CronJobs by the time that a Primer would save in a day, with the CPU- and GiB-hours that it would hold; "
        "needs no Primer and no operator",
        "foresail primer suggest -A",
        "foresail primer suggest -A --price-cpu-hour 0.04 --price-memory-gib-hour 0.005",
        "foresail primer suggest -n shop -l tier=batch -o yaml | kubectl apply -f -",
    )
    one.add_argument("-A", "--all-namespaces", action="store_true", help="all namespaces")
    one.add_argument("-l", "--selector", metavar="SELECTOR", help="CronJobs with these labels")
    one.add_argument(
        "--at-least", type=whole_number, default=5, metavar="SECONDS", help="minimum delay to list (%(default)s)"
    )
    for flag, what in (("--price-cpu-hour", "CPU"), ("--price-memory-gib-hour", "GiB of memory")):
        text = f"price of one {what} per hour; adds the cost per day in that currency"
        one.add_argument(flag, type=_price, default=0.0, metavar="PRICE", help=text)
    one.add_argument(
        "--allow-standing",
        action="store_true",
        help="include Primers that hold capacity for more than half of the time in -o yaml, json and name",
    )
    add_object_output(one)
    _add_zone(one)


def _price(text: str) -> float:
    try:
        price = float(text)
    except ValueError:
        price = -1.0
    if not 0 <= price < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a price: write a number such as 0.04")
    return price


def _verb(
    verbs: Any,  # noqa: ANN401
    name: str,
    help_text: str,
    *commands: str,
) -> argparse.ArgumentParser:
    one: argparse.ArgumentParser = verbs.add_parser(
        name,
        help=help_text,
        description=help_text,
        epilog=examples(*commands),
    )
    where = one.add_argument_group("where")
    where.add_argument(
        "-n", "--namespace", metavar="NAMESPACE", help="namespace of the Primers (default: that of the kube context)"
    )
    add_cluster(where)
    one.set_defaults(run=partial(_run, name), all_namespaces=False)
    return one


def _add_how(one: argparse.ArgumentParser) -> None:
    one.add_argument("--warm-up", required=True, metavar="DURATION", help=_WARM_UP)
    one.add_argument("--method", choices=["Auto", "CapacityBuffer", "Placeholder", "CronJob"], help="(default: Auto)")


def _add_zone(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "--zone", default="UTC", help="time zone of kube-controller-manager, for CronJobs without one (%(default)s)"
    )


def _run(verb: str, args: argparse.Namespace) -> int:
    match verb:
        case "create":
            from foresail.cli.primer.change import create as command
        case "get":
            from foresail.cli.primer.get import get as command
        case "describe":
            from foresail.cli.primer.get import describe as command
        case "explain":
            from foresail.cli.primer.explain import explain as command
        case "suspend":
            from foresail.cli.primer.change import suspend as command
        case "resume":
            from foresail.cli.primer.change import resume as command
        case "delete":
            from foresail.cli.primer.change import delete as command
        case "wait":
            from foresail.cli.primer.wait import wait as command
        case "preview":
            from foresail.cli.primer.preview import preview as command
        case "suggest":
            from foresail.cli.primer.suggest import suggest as command
        case _:
            raise NotImplementedError(verb)
    return command(args)
