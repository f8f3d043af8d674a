"""What the doctor makes of recovery: whether backups are signed, and which wait for an administrator."""

from collections.abc import Iterator

from foresail.cli.doctor.evidence import Evidence
from foresail.cli.doctor.finding import Finding, good, warning


def recovery(seen: Evidence) -> Iterator[Finding]:
    """Report whether a rebuilt cluster could verify its tenants' backups, and what can be adopted now."""
    if seen.signs_records is False:
        fix = "foresail recovery-key create, then keep a copy: foresail recovery-key export > recovery-key.yaml"
        yield warning("recovery", "no recovery key: after a disaster no tenant's backup can be verified", fix)
    elif seen.signs_records:
        yield good("recovery", "the records of tenants' backups are signed")
    if seen.adoptable:
        verified = sum(adoptable.offer.is_verified for adoptable in seen.adoptable)
        rest = len(seen.adoptable) - verified
        says = f"Velero Backups without a NonAdminBackup: {verified} verified, {rest} unverified"
        yield warning("recovery", says, "see them, then adopt them: foresail backup adopt -A")
