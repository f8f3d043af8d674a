"""What the configuration of Velero's node agent says."""

from collections.abc import Mapping, Sequence

import msgspec

from foresail.scope.server import flag_value

_CONFIG = "--node-agent-configmap"


def config_name(agents: Sequence[Sequence[str]]) -> str:
    """Return the name of the ConfigMap of the node agent, by the words of its containers; empty if it has none."""
    return flag_value(agents[0], _CONFIG) if agents else ""


def ignores_delayed_binding(data: Mapping[str, str] | None) -> bool:
    """Whether a restored claim needs no pod: Velero binds it itself."""
    return any(map(_ignores, (data or {}).values()))


def _ignores(text: str) -> bool:
    try:
        settings = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return False
    restored = settings.get("restorePVC") if isinstance(settings, dict) else None
    return isinstance(restored, dict) and restored.get("ignoreDelayBinding") is True
