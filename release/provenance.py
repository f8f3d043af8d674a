"""Prints where and from what a release is built, as a predicate of SLSA provenance: `python -m release.provenance`."""

import json
import os
import sys
from collections.abc import Mapping
from typing import Any


def predicate(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the predicate of a build in GitHub Actions, from the variables that it sets and the image's base."""
    home = f"{environment['GITHUB_SERVER_URL']}/{environment['GITHUB_REPOSITORY']}"
    source = f"git+{home}@{environment['GITHUB_REF']}"
    path = environment["GITHUB_WORKFLOW_REF"].removeprefix(f"{environment['GITHUB_REPOSITORY']}/").partition("@")[0]
    workflow = {"ref": environment["GITHUB_REF"], "repository": home, "path": path}
    base, _, digest = environment["BASE"].partition("@sha256:")
    run = f"{home}/actions/runs/{environment['GITHUB_RUN_ID']}/attempts/{environment['GITHUB_RUN_ATTEMPT']}"
    return {
        "buildDefinition": {
            "buildType": "https://actions.github.io/buildtypes/workflow/v1",
            "externalParameters": {"workflow": workflow},
            "internalParameters": {"github": {"event_name": environment["GITHUB_EVENT_NAME"]}},
            "resolvedDependencies": [
                {"uri": source, "digest": {"gitCommit": environment["GITHUB_SHA"]}},
                {"uri": f"docker://{base}", "digest": {"sha256": digest}},
            ],
        },
        "runDetails": {
            "builder": {"id": f"{environment['GITHUB_SERVER_URL']}/actions/runner/{environment['RUNNER_ENVIRONMENT']}"},
            "metadata": {"invocationId": run},
        },
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(predicate(os.environ), indent=2) + "\n")
