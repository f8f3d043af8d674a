"""`foresail protection set`: the class that a namespace names, or its exemption."""

import argparse
import sys

import msgspec

from foresail.api.core import NAMESPACE
from foresail.api.marks import EXEMPT, PROTECTION, PROTECTION_REASON, PROTECTION_UNTIL
from foresail.api.protection import PROTECTION_CLASS
from foresail.cli.access.cluster import Cluster, on_cluster, settle_namespace
from foresail.cli.errors import CommandError, NotAllowedError, NotFoundError, UsageError
from foresail.cli.options.parser import CLIENT
from foresail.cli.output.messages import hint
from foresail.cli.output.objects import Request, shown
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.protection.rules import exempt_until


def choose(args: argparse.Namespace) -> int:
    """Label a namespace with a class, or with none, a reason and a date."""
    settle_namespace(args)
    request = Request("PATCH", NAMESPACE, Key("", args.namespace), {"metadata": metadata_of(args)})
    if args.dry_run == CLIENT:
        print(shown([request], "yaml"))
        return 0
    return on_cluster(args, lambda cluster: _choose(cluster, args, request))


def metadata_of(args: argparse.Namespace) -> dict[str, object]:
    """Return the label and the annotations of the namespace; an exemption that would not hold is an error."""
    is_exempt = args.choice == EXEMPT
    if not is_exempt and (args.reason or args.until):
        raise UsageError("--reason and --until are for an exemption", f"leave them out, or choose {EXEMPT}")
    if is_exempt and not (args.reason and args.until):
        hint_text = "add --reason 'test data' --until 2027-06-30"
        raise UsageError(f"{EXEMPT}: an exemption needs a reason and a date", hint_text)
    until = exempt_until(args.until) if is_exempt else None
    if is_exempt and (until is None or until <= now()):
        raise UsageError(f"--until {args.until}: not a date that is to come", "write it as 2027-06-30")
    annotations = {PROTECTION_REASON: args.reason, PROTECTION_UNTIL: args.until}
    return {"labels": {PROTECTION: args.choice}, "annotations": annotations}


async def _choose(cluster: Cluster, args: argparse.Namespace, request: Request) -> int:
    if args.choice != EXEMPT:
        await _check_class(cluster, args.choice)
    await cluster.merge(NAMESPACE, request.key, request.body or {}, dry_run=bool(args.dry_run))
    would = " (server dry run)" if args.dry_run else ""
    what = f"exempt until {args.until}" if args.choice == EXEMPT else f"in ProtectionClass {args.choice}"
    print(f"Namespace {request.key.name} is {what}{would}", file=sys.stderr)
    if not args.dry_run:
        hint(f"see what protects it: foresail protection describe -n {request.key.name}")
    return 0


async def _check_class(cluster: Cluster, name: str) -> None:
    """Refuse a class that does not exist; whoever may not read classes finds out by the Protection."""
    try:
        await cluster.read(PROTECTION_CLASS, Key("", name), msgspec.Raw)
    except NotFoundError as error:
        raise CommandError(error.problem, "list them: kubectl get protectionclasses") from error
    except NotAllowedError:
        return
