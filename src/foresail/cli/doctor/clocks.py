"""What the doctor says about clocks and the zone data."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from foresail.cli.doctor.evidence import Evidence
from foresail.cli.doctor.finding import Finding, good, problem, warning

_SKEW = timedelta(seconds=5)
_OLD_ZONES = timedelta(days=500)


def clocks(seen: Evidence) -> Iterator[Finding]:
    """Report whether this machine, the API server and the operator agree what time it is."""
    if seen.server_time is None:
        return
    own = seen.instant - seen.server_time
    allowed = _SKEW + seen.doubt
    renewed = seen.lease.spec.renew_time if seen.lease is not None else None
    if abs(own) > allowed:
        yield warning("clock", f"this machine is {_ahead(own)} the API server", "set its clock: see timedatectl")
    elif renewed is not None and renewed - seen.server_time > allowed:
        says = f"the operator's clock is {_ahead(renewed - seen.server_time)} the API server's, and so are its runs"
        yield problem("clock", says, "set the clock of its node")
    else:
        yield good("clock", f"within {allowed.total_seconds():.0f} s of the API server's")


def _ahead(span: timedelta) -> str:
    seconds = abs(span.total_seconds())
    return f"{seconds:.0f} s {'ahead of' if span > timedelta() else 'behind'}"


def zones(seen: Evidence) -> Iterator[Finding]:
    """Report whether the zone data of this installation is young enough."""
    year, _, number = seen.tzdata.partition(".")
    published = datetime(int(year), min(int(number) * 2, 12), 1, tzinfo=seen.instant.tzinfo)  # about six a year
    if seen.instant - published > _OLD_ZONES:
        yield warning("zones", f"tzdata {seen.tzdata} is more than a year old", "install a newer foresail, or tzdata")
    else:
        yield good("zones", f"tzdata {seen.tzdata}")
