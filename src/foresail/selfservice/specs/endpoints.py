"""Which hosts a tenant's location may lead to: Velero, and the operator, connect from inside the cluster.

The text of an endpoint is compared as it is, never repaired: two parsers that read one text differently are an attack.
"""

import re
from collections.abc import Iterable

_URL = re.compile(r"(https?)://([a-z0-9.-]{1,253})(?::([0-9]{1,5}))?/?", re.ASCII)
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)  # the last label of an address, in any of its spellings
_DEFAULT_PORTS = {"https": "443", "http": "80"}
_LAST_PORT = 65535


def endpoint(text: str) -> str | None:
    """Return an endpoint in the one form that is compared, without a default port; None if it is none.

    Addresses in numbers, users, paths, queries, capitals, international names and trailing dots are none.
    """
    match = _URL.fullmatch(text)
    if match is None:
        return None
    scheme, host, port = match.groups()
    labels = host.split(".")
    if _NUMERIC.fullmatch(labels[-1]) or not all(_LABEL.fullmatch(label) for label in labels):
        return None
    if any(label.startswith("xn--") for label in labels):
        return None
    if port is not None and (port.startswith("0") or int(port) > _LAST_PORT):
        return None
    is_default = port is None or port == _DEFAULT_PORTS[scheme]
    return f"{scheme}://{host}" if is_default else f"{scheme}://{host}:{port}"


def is_allowed(text: str, allowed: Iterable[str]) -> bool:
    """Whether an endpoint is in a policy's list; an entry without a scheme means https."""
    wanted = endpoint(text)
    return wanted is not None and wanted in {endpoint(_with_scheme(each)) for each in allowed}


def _with_scheme(entry: str) -> str:
    return entry if "://" in entry else f"https://{entry}"
