"""Kubeconfig files, written as JSON, which is YAML: everything inline, so that a file can be copied anywhere."""

import base64
import json
from pathlib import Path
from typing import Any


def write(path: Path, server: str, authority: Path, user: dict[str, str]) -> Path:
    """Write a kubeconfig with one cluster and one user, readable by its owner only."""
    content: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "testbed",
        "clusters": [
            {
                "name": "testbed",
                "cluster": {"server": server, "certificate-authority-data": encoded(authority)},
            }
        ],
        "users": [{"name": "testbed", "user": user}],
        "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": "testbed"}}],
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(content, indent=2))
    return path


def encoded(file: Path) -> str:
    """Return the file's bytes as a kubeconfig holds them."""
    return base64.b64encode(file.read_bytes()).decode()
