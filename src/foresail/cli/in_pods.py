"""What pods of ours run: `foresail hold` and `foresail canary`."""

import argparse
import os
import signal
import threading
from pathlib import Path

from foresail.api.marks import CANARY_CLOSED, CANARY_REACHED, JOB_VARIABLE
from foresail.kube.clock import now


def add_hold(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `foresail hold` to the command line; it has no `help`, so that people do not see it in the list."""
    hold = commands.add_parser(
        "hold",
        description="Sleeps for SECONDS and ends with exit code 0; ends at once on SIGTERM. "
        f"If {JOB_VARIABLE} names the Job, the time counts from the minute that the Job was due.",
    )
    hold.add_argument("seconds", type=int, metavar="SECONDS")
    hold.set_defaults(run=_hold)


def seconds_left(seconds: int, job: str, at: float) -> float:
    """Return how long to hold still: a pod that got its node late must not hold it longer."""
    minutes = job.rpartition("-")[2]
    begun = int(minutes) * 60 if minutes.isdecimal() and job else at
    return max(begun + seconds - at, 0.0)


def _hold(args: argparse.Namespace) -> int:
    terminated = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: terminated.set())
    terminated.wait(seconds_left(args.seconds, os.environ.get(JOB_VARIABLE, ""), now().timestamp()))
    return 0


_SECONDS = 5.0
_DNS = 53
_RESOLVER = Path("/etc/resolv.conf")
_API = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")


def add_canary(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `foresail canary` to the command line; it has no `help`, so that people do not see it in the list."""
    canary = commands.add_parser(
        "canary",
        description="Tries to connect to the API server, the DNS servers and each TARGET."
        f" Exit code {CANARY_CLOSED}: nothing answered; {CANARY_REACHED}: something did; others: it could not try.",
    )
    canary.add_argument("targets", nargs="*", metavar="TARGET", help="NAME=HOST:PORT")
    canary.set_defaults(run=_canary)


def targets(words: list[str], environment: dict[str, str], resolver: str) -> dict[str, str]:
    """Return what to try, as host:port by a name for people; none if the API server is unknown."""
    host, port = (environment.get(variable, "") for variable in _API)
    if not host or not port:
        return {}
    servers = [line.split()[1] for line in resolver.splitlines() if line.startswith("nameserver ")]
    addresses = {"API server": _joined(host, port)}
    addresses |= {f"DNS server {server}": _joined(server, str(_DNS)) for server in servers}
    return addresses | dict(word.split("=", 1) for word in words if "=" in word)


async def reached(addresses: dict[str, str], seconds: float = _SECONDS) -> list[str]:
    """Return the names of those that accept a connection."""
    import asyncio  # noqa: PLC0415 - the rest of the command line starts without it

    answers = await asyncio.gather(*(_accepts(address, seconds) for address in addresses.values()))
    return [name for name, is_reached in zip(addresses, answers, strict=True) if is_reached]


async def _accepts(target: str, seconds: float) -> bool:
    import asyncio  # noqa: PLC0415 - the rest of the command line starts without it

    host, _, port = target.rpartition(":")
    try:
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except (OSError, TimeoutError, ValueError):
        return False
    writer.close()
    return True


def _joined(host: str, port: str) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _canary(args: argparse.Namespace) -> int:
    import asyncio  # noqa: PLC0415 - the rest of the command line starts without it

    resolver = _RESOLVER.read_text() if _RESOLVER.exists() else ""
    addresses = targets(args.targets, dict(os.environ), resolver)
    if not addresses:
        print(f"{' and '.join(_API)} are not set: not in a pod")
        return 1
    out = asyncio.run(reached(addresses))
    print(f"reached: {', '.join(out)}" if out else f"closed: {', '.join(addresses)} did not answer")
    return CANARY_REACHED if out else CANARY_CLOSED
