"""The words of `foresail backup` and `foresail restore`; what they do is imported only when one of them is used."""

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

from foresail.cli.options.parser import CommandParser, add_dry_run, examples
from foresail.cli.options.shared import (
    add_bucket,
    add_object_output,
    add_operator_namespace,
    add_output,
    add_own_namespace,
    add_selection,
    add_velero_and_cluster,
    add_velero_namespace,
)

_MEANING = {
    "backup": "back up your namespace",
    "restore": "restore backups of your namespace",
}


_EXAMPLES = {
    "backup": {
        "create": (
            "foresail backup create before-upgrade --wait --fail-on incomplete",
            "foresail backup create db --include-resources secrets -l app=db --ttl 72h",
            "foresail backup create nightly -o yaml > nightly.yaml",
        ),
        "get": ("foresail backup get", "foresail backup get -A --watch", "foresail backup get -o wide -l app=db"),
        "describe": ("foresail backup describe before-upgrade", "foresail backup describe before-upgrade --details"),
        "contents": (
            "foresail backup contents before-upgrade",
            "foresail backup contents before-upgrade --names",
            "foresail backup contents before-upgrade --diff",
        ),
        "diff": ("foresail backup diff before-upgrade", "foresail backup diff before-upgrade -o json"),
        "explain": ("foresail backup explain before-upgrade", "foresail backup explain -o json"),
        "delete": ("foresail backup delete before-upgrade --wait", "foresail backup delete -l app=db --confirm"),
        "wait": ("foresail backup wait before-upgrade --timeout 30m",),
        "logs": (
            "foresail backup logs before-upgrade",
            "foresail backup logs before-upgrade --results",
            "foresail backup logs nightly --follow",
        ),
        "keep": (
            "foresail backup keep nightly-20260301020000",
            "foresail backup keep nightly-20260301020000 --undo",
        ),
        "adopt": (
            "foresail backup adopt -n shop",
            "foresail backup adopt -A",
            "foresail backup adopt -A --approve 3f2a91c0de --wait",
        ),
        "pin": ("foresail backup pin nightly-20260301020000-0f8fad5b",),
        "unpin": ("foresail backup unpin nightly-20260301020000-0f8fad5b",),
    },
    "restore": {
        "create": (
            "foresail restore create --from-backup before-upgrade --wait",
            "foresail restore create undo --from-backup db --include-resources configmaps",
            "foresail restore create --from-backup db --existing-resource-policy update",
            "foresail restore create --from-backup db --only configmap/settings",
            "foresail restore create --from-backup db --to staging --wait",
            "foresail restore create --from-protection gold-1-20261119010000-0a1b2c3d",
        ),
        "plan": (
            "foresail restore plan --from-backup before-upgrade",
            "foresail restore plan undo -o json",
            "foresail restore plan --from-backup db --fail-on refused",
        ),
        "get": ("foresail restore get", "foresail restore get -A --watch"),
        "describe": ("foresail restore describe undo", "foresail restore describe undo --details"),
        "explain": ("foresail restore explain undo", "foresail restore explain -o json"),
        "retry": ("foresail restore retry undo", "foresail restore retry undo --wait"),
        "delete": ("foresail restore delete undo",),
        "wait": ("foresail restore wait undo --timeout 30m",),
        "logs": ("foresail restore logs undo", "foresail restore logs undo --results"),
    },
}


def add_tenant(commands: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add the words of `foresail backup` and `foresail restore` to the command line."""
    for word, meaning in _MEANING.items():
        description = (
            f"Manages your NonAdmin{word.capitalize()}s. You need the role edit in your namespace. "
            "The cluster needs Foresail's operator with self-service."
        )
        shown = [_EXAMPLES[word][verb][0] for verb in ("create", "get", "explain")]
        one = commands.add_parser(word, help=meaning, description=description, epilog=examples(*shown))
        one.fill = _filling(word)


def _filling(word: str) -> Callable[[argparse.ArgumentParser], None]:
    def fill(one: argparse.ArgumentParser) -> None:
        words = one.add_subparsers(required=True, metavar="COMMAND")
        _add_create(words, word)
        if word == "restore":
            _add_plan(words, word)
            _add_retry(words, word)
        _add_reports(words, word)
        if word == "backup":
            _add_contents(words, word)
            _add_diff(words, word)
        _add_delete(words, word)
        _add_wait(words, word)
        _add_logs(words, word)
        if word == "backup":
            from foresail.cli.tenant.schedule.arguments import add_tenant_schedule

            add_tenant_schedule(words)
            _add_keep(words, word)
            _add_adopt(words, word)
            _add_pin(words)

    return fill


def _add_create(words: Any, word: str) -> None:  # noqa: ANN401 - argparse's own is private
    from foresail.cli.tenant.spec_arguments import add_backup_spec, add_restore_spec

    meaning = (
        "create a backup of the namespace" if word == "backup" else "create a restore from a backup of the namespace"
    )
    one = _word(words, word, "create", meaning)
    generated = "" if word == "backup" else " (default: from the backup and the time)"
    one.add_argument("name", nargs="?", metavar="NAME", help=f"name of the NonAdmin{word.capitalize()}{generated}")
    if word == "restore":
        source = one.add_mutually_exclusive_group(required=True)
        source.add_argument(
            "--from-backup", "--backup-name", metavar="NAME", help="name of the NonAdminBackup to restore from"
        )
        source.add_argument(
            "--from-protection",
            metavar="BACKUP",
            help="a point in time that foresail protection describe lists; without pods",
        )
    add_object_output(one, "json, yaml, jsonpath: print the object and send nothing; needs no cluster")
    add_dry_run(one)
    one.add_argument(
        "-w", "--wait", action="store_true", help="wait until it finishes; exit code 1 unless it completes"
    )
    _add_timeout(one)
    _add_fail_on(one, word)
    (add_backup_spec if word == "backup" else add_restore_spec)(one)
    if word == "restore":
        _add_only(one)


def _add_only(one: argparse.ArgumentParser) -> None:
    """Add --only, which restores objects by name: what Velero cannot do."""
    only = one.add_argument_group("objects by name")
    only.add_argument(
        "--only",
        action="append",
        metavar="KIND/NAME,...",
        help="restore exactly these objects: by Velero if they are all of their kinds in the backup. Otherwise you "
        "write them yourself from the backup's contents, after the plan and a question, without a NonAdminRestore: "
        "options about one, such as --labels and --wait, have no effect then",
    )
    only.add_argument("--confirm", action="store_true", help="with --only: do not ask for confirmation")
    add_bucket(one)


def _add_plan(words: Any, word: str) -> None:  # noqa: ANN401
    from foresail.cli.restore_plan.arguments import PATIENCE, add_plan_report
    from foresail.cli.tenant.spec_arguments import add_restore_spec

    one = _word(words, word, "plan", "show what a restore would do to each item, by dry runs; nothing is restored")
    one.add_argument("name", nargs="?", metavar="NAME", help="an existing NonAdminRestore, instead of --from-backup")
    one.add_argument("--from-backup", "--backup-name", metavar="NAME", help="name of the NonAdminBackup")
    add_plan_report(one)
    _add_timeout(one, PATIENCE)
    add_bucket(one)
    add_restore_spec(one)


def _add_retry(words: Any, word: str) -> None:  # noqa: ANN401
    one = _word(words, word, "retry", "ask again for restores that were refused or have expired; none starts by itself")
    one.add_argument("names", nargs="+", metavar="NAME", help=f"names of {word}s")
    add_object_output(one)
    add_dry_run(one)
    one.add_argument(
        "-w", "--wait", action="store_true", help="wait until they finish; exit code 1 unless all complete"
    )
    _add_timeout(one)


def _add_reports(words: Any, word: str) -> None:  # noqa: ANN401
    one = _word(words, word, "get", f"list {word}s with their phase, queue position and blocking reason")
    add_selection(one, f"{word}s")
    one.add_argument("-w", "--watch", action="store_true", help="watch for changes until Ctrl-C")
    _add_timeout(one)
    add_object_output(one)
    one = _word(words, word, "describe", f"show details of {word}s and the next step")
    add_selection(one, f"{word}s")
    one.add_argument("--details", action="store_true", help="also list the volumes by claim, read from the bucket")
    _add_timeout(one)
    add_bucket(one)
    one = _word(words, word, "explain", "show completed steps, what is blocking, and the next step")
    add_selection(one, f"{word}s")
    add_output(one, "table", "json", "yaml")


def _add_contents(words: Any, word: str) -> None:  # noqa: ANN401
    one = _word(words, word, "contents", "list what is in a finished backup, or compare it with the namespace")
    one.add_argument("name", metavar="NAME", help="name of the backup")
    shown = one.add_mutually_exclusive_group()
    shown.add_argument("--names", action="store_true", help="list the objects instead of counts by kind")
    shown.add_argument(
        "--diff", action="store_true", help="list what was deleted or created since, as far as you may list it"
    )
    add_output(one, "table", "json", "yaml")
    _add_timeout(one)
    add_bucket(one)


def _add_diff(words: Any, word: str) -> None:  # noqa: ANN401
    meaning = "show what is gone, new or changed since a backup, with the names of fields and without values"
    one = _word(words, word, "diff", meaning)
    one.add_argument("name", metavar="NAME", help="name of the backup")
    add_output(one, "table", "json", "yaml")
    _add_timeout(one)
    add_bucket(one)


def _add_delete(words: Any, word: str) -> None:  # noqa: ANN401
    meaning = "delete backups with their data" if word == "backup" else "delete restores; restored objects stay"
    one = _word(words, word, "delete", meaning)
    add_selection(one, f"{word}s", f"all {word}s of the namespace, or with -A of the cluster")
    one.add_argument("--confirm", action="store_true", help="do not ask for confirmation")
    if word == "backup":
        one.add_argument(
            "--force", action="store_true", help="leave the data in the bucket; Velero may sync the backup back"
        )
    one.add_argument("-w", "--wait", action="store_true", help="wait until they are deleted")
    _add_timeout(one)
    add_object_output(one)
    add_dry_run(one)
    one.set_defaults(force=False)


def _add_wait(words: Any, word: str) -> None:  # noqa: ANN401
    one = _word(words, word, "wait", f"wait until {word}s finish; exit code 1 unless all complete")
    one.add_argument("names", nargs="+", metavar="NAME", help=f"names of {word}s")
    _add_timeout(one)
    _add_fail_on(one, word)


def _add_fail_on(one: argparse.ArgumentParser, word: str) -> None:
    """Add --fail-on, which only a backup has: it can be complete and lack data."""
    one.set_defaults(fail_on="")
    if word == "backup":
        meaning = "exit code 1 also if it completes without the data of a volume, a kind or any object"
        one.add_argument("--fail-on", choices=["incomplete"], default="", help=meaning)


def _add_logs(words: Any, word: str) -> None:  # noqa: ANN401
    one = _word(words, word, "logs", f"print Velero's log of a finished {word}")
    one.add_argument("name", metavar="NAME", help=f"name of the {word}")
    one.add_argument("--results", action="store_true", help="print errors and warnings instead of the log")
    one.add_argument("-f", "--follow", action="store_true", help=f"wait until the {word} has finished")
    _add_timeout(one)
    add_bucket(one)


def _add_adopt(words: Any, word: str) -> None:  # noqa: ANN401
    one = _word(
        words,
        word,
        "adopt",
        "for administrators: list the Velero Backups without a NonAdminBackup, and give them to their namespaces",
    )
    one.add_argument("names", nargs="*", metavar="NAME", help="adopt these backups of the namespace")
    one.add_argument("-A", "--all-namespaces", action="store_true", help="all namespaces")
    one.add_argument(
        "--approve",
        metavar="LIST",
        help="adopt the listed backups, and no others, by the digest that was printed with them",
    )
    one.add_argument(
        "--include-unverified",
        action="store_true",
        help="offer also those that anybody who writes to the bucket could have put there",
    )
    one.add_argument("-w", "--wait", action="store_true", help="wait until the operator has adopted them")
    _add_timeout(one)
    add_output(one, "table", "json", "yaml")
    add_dry_run(one)
    add_velero_namespace(one)
    add_operator_namespace(one)


def _add_keep(words: Any, word: str) -> None:  # noqa: ANN401
    one = _word(words, word, "keep", "take back the announced deletion of backups: keepLast never deletes them then")
    one.add_argument("names", nargs="+", metavar="NAME", help="names of backups")
    one.add_argument("--undo", action="store_true", help="let keepLast of the policy delete them again")
    add_object_output(one)
    add_dry_run(one)


def _add_pin(words: Any) -> None:  # noqa: ANN401
    for verb, meaning in (
        ("pin", "for administrators: keep Velero Backups whatever the retention of a SchedulePolicy says"),
        ("unpin", "for administrators: let the retention of a SchedulePolicy delete Velero Backups again"),
    ):
        one: argparse.ArgumentParser = words.add_parser(
            verb, help=meaning, description=meaning, epilog=examples(*_EXAMPLES["backup"][verb])
        )
        add_velero_and_cluster(one.add_argument_group("where"))
        one.add_argument("names", nargs="+", metavar="NAME", help="names of Velero Backups")
        add_object_output(one)
        add_dry_run(one)
        one.set_defaults(run=partial(_run_pin, verb), word="backup")


def _word(words: Any, word: str, verb: str, meaning: str) -> argparse.ArgumentParser:  # noqa: ANN401
    one: argparse.ArgumentParser = words.add_parser(
        verb, help=meaning, description=meaning, epilog=examples(*_EXAMPLES[word][verb])
    )
    add_own_namespace(one)
    one.set_defaults(run=partial(_run, verb), word=word)
    return one


def _add_timeout(one: argparse.ArgumentParser, default: str | None = None) -> None:
    meaning = f"maximum time to wait, such as 30m (default: {default or 'no limit, once an operator has seen it'})"
    one.add_argument("--timeout", metavar="DURATION", default=default, help=meaning)


def _run(verb: str, args: argparse.Namespace) -> int:
    match verb:
        case "create":
            from foresail.cli.tenant.create import create as command
        case "get":
            from foresail.cli.tenant.get import get as command
        case "describe":
            from foresail.cli.tenant.describe import describe as command
        case "explain":
            from foresail.cli.tenant.explain import explain as command
        case "contents":
            from foresail.cli.tenant.contents import contents as command
        case "diff":
            from foresail.cli.tenant.diff import diff as command
        case "delete":
            from foresail.cli.tenant.delete import delete as command
        case "wait":
            from foresail.cli.tenant.wait import wait as command
        case "logs":
            from foresail.cli.tenant.logs import logs as command
        case "adopt":
            from foresail.cli.tenant.adopt import adopt as command
        case "keep":
            from foresail.cli.tenant.keep import keep as command
        case "plan":
            from foresail.cli.tenant.restore_plan import plan as command
        case "retry":
            from foresail.cli.tenant.create import retry as command
        case _:
            raise NotImplementedError(verb)
    return command(args)


def _run_pin(verb: str, args: argparse.Namespace) -> int:
    from foresail.cli.tenant.keep import pin, unpin

    return (pin if verb == "pin" else unpin)(args)
