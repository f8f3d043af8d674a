"""What a command is about to send: shown with --dry-run, sent without."""

from dataclasses import dataclass
from typing import Any

from foresail.cli.options.output import JSONPATH
from foresail.cli.output.objects import document
from foresail.kube.client import address
from foresail.plan import Key, Kind


@dataclass(frozen=True, slots=True)
class Request:
    """One write."""

    method: str
    kind: Kind
    key: Key
    body: dict[str, Any] | None = None

    @property
    def path(self) -> str:
        """The address that it goes to."""
        return address(self.kind, self.key.namespace, "" if self.method == "POST" else self.key.name)

    def as_data(self) -> dict[str, Any]:
        """Return it for people and programs to read."""
        body = {} if self.body is None else {"body": self.body}
        return {"method": self.method, "path": self.path, **body}


def shown(requests: list[Request], form: str) -> str:
    """Return requests as they would be sent: YAML unless `-o` selects JSON or a template."""
    is_data = form == "json" or form.startswith(JSONPATH)
    return document([request.as_data() for request in requests], form if is_data else "yaml")
