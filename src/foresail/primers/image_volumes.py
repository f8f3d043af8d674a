"""Whether placeholders pull the images of a run, by image volumes that nothing mounts.

Kubelets pull the image of every such volume from the release on in which they are on by default. An API server, or a
policy of a namespace, may still refuse them: then placeholders are created without them.
"""

import re
from typing import Any

from foresail.api import pods
from foresail.plan import Action, Create

FIRST_RELEASE = (1, 35)
_VERSION = re.compile(r"v?(\d{1,4})\.(\d{1,4})")
_ABOUT_VOLUMES = "volume"  # in every refusal that is about one, whoever refuses


def pulls_images(kubelet: str) -> bool:
    """Whether a kubelet of this version pulls the images of volumes."""
    match = _VERSION.match(kubelet)
    return match is not None and (int(match[1]), int(match[2])) >= FIRST_RELEASE


class ImageVolumes:
    """In which namespaces image volumes have been refused since the operator started."""

    def __init__(self) -> None:
        self._refused: dict[str, str] = {}  # by namespace, the message
        self._certain = set[str]()  # where a placeholder without them was accepted

    def are_accepted(self, namespace: str) -> bool:
        """Whether a placeholder may have them."""
        return namespace not in self._refused

    def unreported_refusal(self, namespace: str) -> str:
        """Return the message of the refusal, until a placeholder without them is accepted; else an empty string."""
        return "" if namespace in self._certain else self._refused.get(namespace, "")

    def learn_refusal(self, action: Create, words: str) -> bool:
        """Take in that a creation was refused; return whether to try it without image volumes."""
        namespace = action.key.namespace
        if _has_images(action):
            if _ABOUT_VOLUMES in words.lower():
                self._refused.setdefault(namespace, words)
            return _ABOUT_VOLUMES in words.lower()
        if action.kind == pods.POD and namespace not in self._certain:
            self._refused.pop(namespace, None)  # so it was not for the volumes
        return False

    def learn_creations(self, namespace: str, actions: tuple[Action, ...]) -> None:
        """Take in that everything was accepted."""
        makes = [action for action in actions if isinstance(action, Create) and action.kind == pods.POD]
        if namespace in self._refused and makes and not any(map(_has_images, makes)):
            self._certain.add(namespace)


def _has_images(action: Create) -> bool:
    spec: Any = action.body.get("spec") or {}
    return action.kind == pods.POD and bool(spec.get("volumes"))
