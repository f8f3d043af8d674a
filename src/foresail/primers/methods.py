"""The methods by their names: each is a module with `plan` and `release`, and another one is one line more."""

from types import ModuleType

from foresail.api.primer import BY_CRON_JOB, PLACEHOLDER
from foresail.primers import holders, placeholder

METHODS: dict[str, ModuleType] = {PLACEHOLDER: placeholder, BY_CRON_JOB: holders}
