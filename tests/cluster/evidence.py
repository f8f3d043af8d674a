"""What a failed test on a cluster leaves in the output: the ends of the logs, for its cluster is gone afterwards."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from testbed import Cluster
from tests.cluster.speaking import Speaking

_LINES = 40
_LONGEST = 400  # characters of a line
_COMPONENTS = ("velero",)  # those of the control plane say too much and explain little


def ends_of_logs(fixtures: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Return the name and the last lines of each log that belongs to what a test uses."""
    logs = dict[Path, str]()
    for each in fixtures.values():
        if isinstance(each, Speaking):
            logs[each.log] = "operator"
        elif isinstance(each, Cluster):
            logs.update({each.log(name): name for name in _COMPONENTS if name in each.components})
    for path, name in logs.items():
        if path.exists():
            lines = path.read_text(errors="replace").splitlines()[-_LINES:]
            yield f"end of the log of {name}", "\n".join(line[:_LONGEST] for line in lines)
