"""Which images placeholders pull ahead, and how large they are as far as nodes that have them report it."""

from collections.abc import Iterable, Mapping

import msgspec

from foresail.api import pods
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError

Sizes = Mapping[str, int]
"""By the name of an image, in bytes, compressed or not as the runtime counts."""

_MEGABYTE = 1_000_000


class Image(msgspec.Struct, frozen=True, rename="camel"):
    """An image on a node; a kubelet reports the largest fifty."""

    names: list[str] | None = None
    size_bytes: int = 0


class _Status(msgspec.Struct, frozen=True):
    images: list[Image] | None = None


class _Node(msgspec.Struct, frozen=True):
    status: _Status = _Status()


_node = msgspec.json.Decoder(_Node)


async def image_sizes(cluster: Cluster) -> Sizes:
    """Read the sizes of images; empty if the user may not read nodes."""
    try:
        found = map(_node.decode, await cluster.listed(pods.NODE, ""))
    except CommandError:
        return {}
    return sizes_of(image for node in found for image in node.status.images or ())


def sizes_of(images: Iterable[Image]) -> Sizes:
    """Return the sizes by every name that an image has."""
    return {name: image.size_bytes for image in images for name in image.names or ()}


def pulled_ahead(images: Iterable[str], sizes: Sizes, *, pulls: bool) -> str:
    """Return in a line which images are pulled ahead, each with its size where a node reports one."""
    if not pulls:
        return "images: not pulled ahead, because not every node has a kubelet of Kubernetes 1.35 or newer"
    known = [f"{image} ({_shown(_size(image, sizes))})" for image in images]
    return f"images: pulled ahead with each placeholder: {', '.join(known)}"


def _size(image: str, sizes: Sizes) -> int | None:
    """Return the size of an image; its name may leave out the registry, and the tag `latest`."""
    name = image if "@" in image or ":" in image.rpartition("/")[2] else f"{image}:latest"
    if name in sizes:
        return sizes[name]
    return next((size for each, size in sizes.items() if each.endswith(f"/{name}")), None)


def _shown(size: int | None) -> str:
    if size is None:
        return "size not known: no node reports it"
    return f"{max(round(size / _MEGABYTE), 1)} MB"
