"""A selection of the cluster tests in every combination of a Kubernetes and a Velero: `make matrix`.

Prints what pytest prints and, last, one JSON object: for each combination what passed, what failed, and what does not
apply to that Kubernetes.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from xml.etree import ElementTree as ET

from testbed.build import build
from testbed.cluster import components_of
from testbed.site import Options
from tests.cluster import versions

ROOT = Path(__file__).parents[1]
KUBERNETES = {
    "1.37": Options(kubernetes="kube-1.37"),
    "1.36": Options(),
    "1.35": Options(kubernetes="kube-1.35"),
    "1.34": Options(kubernetes="kube-1.34"),
    "1.33-emulated": Options(emulate="1.33"),
}
VELERO = {"1.18": "velero", "1.17": "velero-1.17"}
_ADMISSION = "tests/cluster/test_selfservice_admission.py"
SELECTION = (
    "tests/cluster/test_schedules_velero.py",
    "tests/cluster/test_selfservice.py",
    _ADMISSION,
    "tests/cluster/test_install.py::test_from_the_readme_installed_used_by_all_three_and_removed_with_nothing_left",
)
"""Schedules and self-service end to end, the admission policies, and from install to uninstall."""
LEFT_OUT = (
    "tests/cluster/test_schedules_velero.py::test_two_clusters_on_one_bucket_and_prefix_never_take_each_others_names",
)
"""What depends on neither version and takes minutes."""
NEEDS_MUTATION = (
    f"{_ADMISSION}::test_the_requester_is_who_created_a_request_and_then_who_changed_its_spec",
    f"{_ADMISSION}::test_who_releases_a_request_that_velero_restored_becomes_its_requester",
)
"""What needs MutatingAdmissionPolicies in version v1."""
_MUTATE = ("1.36", "1.37")
_SECONDS = 3600


@dataclass
class Result:
    """What came of one combination."""

    kubernetes: str
    velero: str
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    not_applicable: list[str] = field(default_factory=list)
    seconds: int = 0


def run(kubernetes: str, velero: str) -> Result:
    """Run the selection in one combination."""
    chosen = KUBERNETES[kubernetes]
    absent = () if kubernetes in _MUTATE else NEEDS_MUTATION
    result = Result(kubernetes, velero, not_applicable=[each.rpartition("::")[2] for each in absent])
    environment = {
        **os.environ,
        versions.KUBERNETES: chosen.kubernetes,
        versions.EMULATE: chosen.emulate,
        versions.VELERO: VELERO[velero],
    }
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        words = [*SELECTION, *(f"--deselect={each}" for each in (*LEFT_OUT, *absent)), f"--junitxml={report}"]
        command = [sys.executable, "-m", "pytest", "-q", "--timeout=900", *words]
        subprocess.run(command, cwd=ROOT, env=environment, check=False, timeout=_SECONDS)
        count(ET.parse(report).iter("testcase"), result)  # noqa: S314 - our own pytest wrote it
    result.seconds = round(time.monotonic() - began)
    return result


def count(cases: Iterable[ET.Element], result: Result) -> None:
    """Count the cases of a report; a skipped test is a failed one."""
    for case in cases:
        if any(case.find(kind) is not None for kind in ("failure", "error", "skipped")):
            result.failed.append(case.get("name", ""))
        else:
            result.passed += 1


def main() -> int:
    """Run every combination, or those that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubernetes", choices=KUBERNETES, action="append", help="only this one")
    parser.add_argument("--velero", choices=VELERO, action="append", help="only this one")
    args = parser.parse_args()
    pairs = [(one, other) for one in args.kubernetes or KUBERNETES for other in args.velero or VELERO]
    for one, other in pairs:
        build([*components_of(replace(KUBERNETES[one], velero=VELERO[other], nodes=1)), "helm"], print)
    results = []
    for one, other in pairs:
        print(f"Kubernetes {one}, Velero {other}", flush=True)
        results.append(run(one, other))
    failed = sum(len(each.failed) for each in results)
    print(json.dumps({"failed": failed, "combinations": [asdict(each) for each in results]}))
    return 1 if failed or not all(each.passed for each in results) else 0


if __name__ == "__main__":
    sys.exit(main())
