"""The methods by name: each is a module with `plan` and `release`."""

from types import ModuleType

from foresail.api.primer import BY_BUFFER, BY_CRON_JOB, PLACEHOLDER
from foresail.primers import method_buffer, method_cronjob, method_placeholder

METHODS: dict[str, ModuleType] = {
    PLACEHOLDER: method_placeholder,
    BY_CRON_JOB: method_cronjob,
    BY_BUFFER: method_buffer,
}
