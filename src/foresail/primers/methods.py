"""The methods by their names: each is a module with `plan` and `release`, and another one is one line more."""

from types import ModuleType

from foresail.api.primer import BY_BUFFER, BY_CRON_JOB, PLACEHOLDER
from foresail.primers import buffer, holders, placeholder

METHODS: dict[str, ModuleType] = {PLACEHOLDER: placeholder, BY_CRON_JOB: holders, BY_BUFFER: buffer}
