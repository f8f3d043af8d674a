"""What has to be changed where a tool keeps Velero, in the words of that tool."""

from collections.abc import Sequence

from foresail.cli.access.managed_by import HELM_RELEASE, ManagingTool
from foresail.cli.install.velero_arguments import FLAG


def change(tool: ManagingTool, others: Sequence[str], *, off: bool) -> str:
    """Return the exact change by which Velero's schedule controller is off or on; `others` are off and stay so."""
    names = [*others, "schedule"] if off else list(others)
    if tool.is_oadp:
        values = f"[{', '.join(names)}]"
        return f"spec:\n  configuration:\n    velero:\n      args:\n        disabled-controllers: {values}"
    if tool.has_values:
        text = f'configuration:\n  disableControllers: "{",".join(names)}"'
        if not tool.source.startswith(HELM_RELEASE):
            return text
        return "spec:\n  values:\n" + "\n".join(f"    {line}" for line in text.splitlines())
    if not names:
        return f"remove the argument {FLAG}=schedule of the container"
    return f"let the container have the argument {FLAG}={','.join(names)}, and no other {FLAG}"
