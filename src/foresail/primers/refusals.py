"""What the API server refused to create, with its message: it is reported, and not retried."""

from collections.abc import Container
from typing import NamedTuple

from foresail.api.marks import TARGET_UID
from foresail.plan import Create, Key
from foresail.reporting import LONGEST_MESSAGE


class _Refusal(NamedTuple):
    name: str
    message: str


_Group = tuple[str, str]  # the UID of a CronJob, and the kind of the object


class Refusals:
    """The last refusal for each CronJob of a Primer and each kind of object: names change with every fire."""

    def __init__(self) -> None:
        self._found: dict[Key, dict[_Group, _Refusal]] = {}

    def of(self, primer: Key) -> dict[str, str]:
        """Return the messages by the names of the objects that were refused for a Primer."""
        return {refusal.name: refusal.message for refusal in self._found.get(primer, {}).values()}

    def add(self, primer: Key, action: Create, message: str, cron_jobs: Container[str]) -> None:
        """Keep a refusal, and of the ones before only those for these CronJobs, which the Primer is for now."""
        group = action.mark.get(TARGET_UID, ""), action.kind.name
        known = {each: value for each, value in self._found.get(primer, {}).items() if each[0] in cron_jobs}
        self._found[primer] = {
            **known,
            group: _Refusal(action.key.name, message[:LONGEST_MESSAGE]),
        }

    def forget(self, primer: Key) -> None:
        """Forget what was refused for a Primer."""
        self._found.pop(primer, None)

    def forget_namespace(self, namespace: str) -> list[Key]:
        """Forget what was refused in a namespace, and return for which Primers."""
        freed = [object_key for object_key in self._found if object_key.namespace == namespace]
        for key in freed:
            del self._found[key]
        return freed
