"""Which kubeconfig is meant, and what is wrong with it, in words of our own."""

import os
from pathlib import Path
from typing import Any

import yaml

_DEFAULT = "~/.kube/config"


def kubeconfig_paths(given: str | None) -> str:
    """Return the paths of the kubeconfig: the one given, those of KUBECONFIG, or the default."""
    return given or os.environ.get("KUBECONFIG") or _DEFAULT


def kubeconfig_problem(paths: str, context: str | None) -> str | None:
    """Return why nothing can be reached with these files and this context; None if they look usable."""
    files = [Path(each).expanduser() for each in paths.split(os.pathsep) if each]
    there = [each for each in files if each.exists()]
    if not there:
        return f"there is no kubeconfig at {', '.join(map(str, files))}"
    try:
        contents = [_content(file) for file in there]
    except ValueError as error:
        return str(error)
    contexts = [name for each in contents for name in _names(each.get("contexts"))]
    wanted = context or next((str(each["current-context"]) for each in contents if each.get("current-context")), "")
    where = f"kubeconfig {', '.join(map(str, there))}"
    if not wanted:
        return f"{where} sets no current context"
    if wanted not in contexts:
        return f"{where} has no context {wanted!r}; it has: {', '.join(contexts) or 'none'}"
    return None


def _content(file: Path) -> dict[str, Any]:
    try:
        content = yaml.load(file.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - it is safe
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"kubeconfig {file} cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise ValueError(f"kubeconfig {file} is not YAML") from error
    if not isinstance(content, dict):
        raise ValueError(f"kubeconfig {file} is {'empty' if content is None else 'no kubeconfig'}")  # noqa: TRY004
    return content


def _names(contexts: Any) -> list[str]:  # noqa: ANN401 - a field of a file
    found = contexts if isinstance(contexts, list) else []
    return [str(each["name"]) for each in found if isinstance(each, dict) and "name" in each]
