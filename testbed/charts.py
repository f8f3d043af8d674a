"""Renders the charts, by the real Helm, into the manifests that `foresail install` applies: `make manifests`.

A chart is rendered once for each set of capabilities. What only the cluster or the user can say stands in it as a word
in capitals, which no name in a cluster can be; the command puts their words there, and decides nothing else.
"""

import subprocess
import sys
from itertools import combinations
from pathlib import Path

from testbed.build import program

CHARTS = Path(__file__).parents[1] / "charts"
SWITCHES = {
    "schedules": "schedules.enabled",
    "self-service": "selfService.enabled",
    "primers": "primers.enabled",
    "restore-checks": "proof.restoreChecks",
}
BLANKS = {
    "veleroNamespace": "VELERO-NAMESPACE",
    "veleroServiceAccount": "VELERO-SERVICE-ACCOUNT",
    "image.repository": "FORESAIL-IMAGE",
    "image.tag": "TAG",
    "primers.pauseImage": "PAUSE-IMAGE",
    "schedules.withHooks": "{schedule.with.hooks}",
    "selfService.requesterStamp": "Always",
    "selfService.locations.enabled": "true",
    "monitoring.rules": "true",
    "monitoring.serviceMonitor": "true",
}


def files() -> dict[str, str]:
    """Return the manifests by the names of their files."""
    found = {"crds.yaml": rendered("foresail-crds", "default", {})}
    for count in range(1, len(SWITCHES) + 1):
        for chosen in combinations(SWITCHES, count):
            switches = {value: str(name in chosen).lower() for name, value in SWITCHES.items()}
            text = rendered("foresail", BLANKS["veleroNamespace"], {**BLANKS, **switches})
            found[f"{'+'.join(chosen)}.yaml"] = text
    return found


def rendered(chart: str, namespace: str, values: dict[str, str]) -> str:
    """Return what Helm makes of a chart with these values."""
    command = [str(program("helm", "helm")), "template", "foresail", str(CHARTS / chart), f"--namespace={namespace}"]
    settings = [f"--set={name}={value}" for name, value in values.items()]
    return subprocess.run([*command, *settings], capture_output=True, text=True, check=True).stdout


def main(folder: Path) -> None:
    """Write the manifests into a folder, and nothing else may stay there."""
    for old in folder.glob("*.yaml"):
        old.unlink()
    for name, text in files().items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
