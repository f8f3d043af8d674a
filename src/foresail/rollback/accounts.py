"""ServiceAccounts: Velero only adds to those that exist, so an undo takes away what its restore has added."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from foresail.api.rollback import MOST_ACCOUNTS, Account, RollbackSpec
from foresail.plan import Key, Patch
from foresail.rollback.kinds import ACCOUNT, full_name
from foresail.rollback.view import AccountSeen

_OF_VELERO = "velero.io/"
_MOST_CHARACTERS = 64 << 10


_PHASES = frozenset({"Planning", "Suspending", "Stopping", "Replacing", "Undoing"})
"""The phases in which ServiceAccounts are looked at: they are recorded before the restore begins."""


def are_read(phase: str, spec: RollbackSpec) -> bool:
    """Whether ServiceAccounts are looked at: in some phases, if the Rollback restores any."""
    if phase not in _PHASES:
        return False
    return spec.volumes != "Data" and (spec.only is None or full_name(ACCOUNT) in spec.only)


def records(seen: Iterable[AccountSeen]) -> tuple[Account, ...]:
    """Return what is recorded of ServiceAccounts before a restore."""
    return tuple(
        Account(
            account.name,
            account.uid,
            _names(account.pull_secrets),
            _names(account.secrets),
            _own(account.labels),
            _own(account.annotations),
        )
        for account in seen
    )


def too_many(seen: Iterable[AccountSeen]) -> str:
    """Return why not all of that can be recorded; empty if it can."""
    accounts = records(seen)
    if len(accounts) <= MOST_ACCOUNTS and len(msgspec.json.encode(accounts)) <= _MOST_CHARACTERS:
        return ""
    return f"an undo remembers {MOST_ACCOUNTS} ServiceAccounts and {_MOST_CHARACTERS >> 10} KiB of their names at most"


def to_take_back(recorded: Iterable[Account], seen: Iterable[AccountSeen], namespace: str) -> Iterator[Patch]:
    """Return the writes that take away what was added to ServiceAccounts since they were recorded."""
    by_uid = {account.uid: account for account in seen}
    for record in recorded:
        account = by_uid.get(record.uid)
        if account is None:
            continue
        metadata, lists = _added_keys(record, account), _shorter_lists(record, account)
        if metadata or lists:
            about: dict[str, object] = {"uid": account.uid, **metadata}
            body: dict[str, object] = {"metadata": about, **lists}
            yield Patch(ACCOUNT, Key(namespace, account.name), body, account.version)


def _added_keys(record: Account, account: AccountSeen) -> dict[str, dict[str, None]]:
    keys = {
        "labels": set(_own(account.labels)) - set(record.labels),
        "annotations": set(_own(account.annotations)) - set(record.annotations),
    }
    return {part: dict.fromkeys(sorted(added)) for part, added in keys.items() if added}


def _shorter_lists(record: Account, account: AccountSeen) -> dict[str, list[Mapping[str, object]]]:
    lists = {}
    for part, before, now in (
        ("imagePullSecrets", record.pull_secrets, account.pull_secrets),
        ("secrets", record.secrets, account.secrets),
    ):
        kept = [reference for reference in now if reference.get("name") in before]
        if len(kept) < len(now):
            lists[part] = kept
    return lists


def _names(references: Iterable[Mapping[str, object]]) -> tuple[str, ...]:
    return tuple(str(reference.get("name", "")) for reference in references)


def _own(keys: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(key for key in keys if not key.startswith(_OF_VELERO)))
