"""The fields of a spec that a policy can require, default or restrict: a table row says how each is settled."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from foresail.api.policy import BackupPolicy, RestorePolicy
from foresail.api.specs import BackupSpec, RestoreSpec
from foresail.selfservice.specs.values import (
    Violation,
    anything,
    config_map,
    duration,
    files_at_once,
    length,
    listed,
    settled,
)


class Field(NamedTuple):
    """One field: what the tenant wrote, and the policy."""

    name: str
    path: str  # as the tenant reads it
    wrote: Any
    rules: BackupPolicy | RestorePolicy
    policy: str

    @property
    def required(self) -> Any:  # noqa: ANN401 - of the field's type
        """What the policy requires."""
        return getattr(self.rules.required, self.name)

    @property
    def default(self) -> Any:  # noqa: ANN401 - of the field's type
        """What the policy takes if the tenant wrote nothing."""
        return getattr(self.rules.defaults, self.name)

    def allowed(self, names: str) -> tuple[str, ...]:
        """Return a list of the policy."""
        found: tuple[str, ...] = getattr(self.rules.allowed, names)
        return found

    def settle(self, check: Callable[[Any], None], *, is_empty_unset: bool = False) -> Any:  # noqa: ANN401 - as above
        """Return the value; `check` is for what the tenant wrote."""
        wrote = self.wrote or None if is_empty_unset else self.wrote
        return settled(self.path, wrote, self.required, self.default, check)


Settle = Callable[[Field], Any]


def settle_all(
    table: Mapping[str, Settle],
    spec: BackupSpec | RestoreSpec,
    path: str,
    rules: BackupPolicy | RestorePolicy,
    policy: str,
) -> dict[str, Any]:
    """Return the values of all fields of a table, in its order."""
    written = dict(zip(spec.__struct_fields__, spec.__struct_encode_fields__, strict=True))
    fields = (Field(name, f"{path}.{written[name]}", getattr(spec, name), rules, policy) for name in table)
    return {field.name: table[field.name](field) for field in fields}


# Rows of a table


def free(field: Field) -> Any:  # noqa: ANN401 - of the field's type
    """Take any value of the tenant."""
    return field.settle(anything)


def one_of(names: str, *always: str) -> Settle:
    """Take a value of the policy's list, or one that is always allowed."""
    return lambda field: field.settle(
        listed(field.path, (*always, *field.allowed(names)), field.policy), is_empty_unset=True
    )


def all_of(names: str, violation: str) -> Settle:
    """Take a list whose values are all in the policy's list."""

    def settle(field: Field) -> Any:  # noqa: ANN401 - of the field's type
        def check(wrote: tuple[str, ...]) -> None:
            if any(each not in field.allowed(names) for each in wrote):
                raise Violation(violation)

        return field.settle(check, is_empty_unset=True)

    return settle


def config_map_of(names: str) -> Settle:
    """Take a reference to a ConfigMap in the policy's list."""
    return lambda field: field.settle(config_map(field.path, field.allowed(names), field.policy))


def within(ceiling: str | None, unset: str | None = None) -> Settle:
    """Take a duration within the policy's bounds, and within our ceiling where the policy has no maximum.

    What is not set lasts for as long as Velero wants, if that is known, and never longer than the maximum.
    """

    def settle(field: Field) -> str | None:
        bounds = getattr(field.rules, field.name)
        default = field.default
        if not default and bounds.maximum is not None and _is_shorter(field.path, bounds.maximum, unset):
            default = bounds.maximum
        return duration(field.path, field.wrote, bounds, required=field.required, default=default, ceiling=ceiling)

    return settle


def _is_shorter(path: str, maximum: str, unset: str | None) -> bool:
    return unset is None or length(path, maximum) < length(path, unset)


def uploader(files: str, written: str) -> Settle:
    """Take the settings of an uploader with as many files at once as the policy lets it have."""

    def settle(field: Field) -> Any:  # noqa: ANN401 - of the field's type
        check = files_at_once(f"{field.path}.{written}", field.rules.parallel_files, field.policy)
        return field.settle(lambda value: check(getattr(value, files)))

    return settle
