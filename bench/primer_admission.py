"""Random pods and their placeholders against a real API server: `make primer-admission`.

Prints each placeholder that is refused and, last, one JSON object: how many pods were tried, and how many refused.
"""

import argparse
import json
import os
import sys
import time

from testbed import Cluster, Options
from tests.cluster import primer_admission

PATIENCE = 60.0


def main() -> int:
    """Bring up a cluster, and try so many pods on it; 0 if no placeholder is refused."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pods", type=int, default=2_000)
    options.add_argument("--seed", type=int, default=15)
    asked = options.parse_args()
    with Cluster.create(f"primer-admission-{os.getpid()}", Options(), owned=True) as cluster:
        primer_admission.install(cluster)
        deadline = time.monotonic() + PATIENCE
        while not primer_admission.is_ready(cluster) and time.monotonic() < deadline:
            time.sleep(0.5)
        began = time.monotonic()
        found = primer_admission.tally(cluster, asked.pods, asked.seed)
        seconds = time.monotonic() - began
    print(*found.refused[:20], sep="\n")
    print(json.dumps({"pods": found.pods, "refused": len(found.refused), "seconds": round(seconds, 1)}))
    return 1 if found.refused or found.pods < asked.pods else 0


if __name__ == "__main__":
    sys.exit(main())
