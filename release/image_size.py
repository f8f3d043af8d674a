"""Measures an image: the uncompressed bytes of the layers that it has above its base."""

import gzip
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path


def layers_above(image: str, base: str, tool: Sequence[str] = ("buildah",)) -> list[int]:
    """Return the uncompressed sizes of the layers of an image above those of its base; the tool says where they are."""
    all_layers, below = _layers(image, tool), _layers(base, tool)
    if all_layers[: len(below)] != below:
        raise SystemExit(f"image {image} is not built on {base}")
    return [size for _, size in all_layers[len(below) :]]


def _layers(image: str, tool: Sequence[str]) -> list[tuple[str, int]]:
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        subprocess.run([*tool, "push", "--quiet", image, f"oci:{where}:measured"], check=True)
        index = json.loads((where / "index.json").read_text())
        manifest = json.loads(_blob(where, index["manifests"][0]["digest"]).read_text())
        return [(each["digest"], _uncompressed(_blob(where, each["digest"]))) for each in manifest["layers"]]


def _blob(folder: Path, digest: str) -> Path:
    return folder / "blobs" / Path(*digest.split(":"))


def _uncompressed(layer: Path) -> int:
    with gzip.open(layer) as tar:
        return tar.seek(0, io.SEEK_END)


def main() -> None:
    """Print the sizes as one JSON object."""
    image, base = sys.argv[1:]
    sizes = layers_above(image, base)
    sys.stdout.write(json.dumps({"image": image, "layers_mb": round(sum(sizes) / 1e6, 1), "layers": len(sizes)}) + "\n")


if __name__ == "__main__":
    main()
