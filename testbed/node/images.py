"""The images of a node: made from programs that were built here and from Debian's packages, never fetched."""

import hashlib
import http.client
import io
import json
import os
import platform
import re
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed import ports
from testbed.api import is_ok
from testbed.build import Say, cached_folder, component_named, only_one, program
from testbed.components import COMPONENTS, VELERO_VERSION
from testbed.errors import TestbedError
from testbed.node.needs import command
from testbed.places import programs_folder

PAUSE = "testbed.foresail.dev/pause:1"
BUSYBOX = "busybox:1"
POSTGRES = "postgres:15"
_PLUGIN_TAG = "v1.14.3"
_RECIPE = 1  # raise it with every change of what is in the images
_SUITE = "bookworm"
_BASE_PACKAGES = ("python3", "python3-venv", "python-is-python3", "ca-certificates")
_POSTGRES_PACKAGES = ("postgresql-15",)
# What a database in a container does not need: a cluster made by the installation of the package, and its compiler.
_NOT_OF_POSTGRES = (
    "var/lib/postgresql/15",
    "usr/lib/*/libLLVM*",
    "usr/lib/*/libz3*",
    "usr/share/i18n",
    "usr/share/doc",
)
_DEBIAN_MINUTES = 2
_IMAGES_MINUTES = 0.5
_SECONDS = 1200
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


@dataclass(frozen=True, slots=True)
class Image:
    """An image of one layer: the files in it, and whom and what it runs as."""

    name: str
    files: dict[str, Path]  # path in the image: the file
    user: str
    command: tuple[str, ...]
    links: tuple[str, ...] = ()  # further names of the first file
    homes: tuple[str, ...] = ()  # folders that belong to the user
    environment: tuple[str, ...] = ()


def velero_tag(component: str) -> str:
    """Return the tag of the image of that component of Velero."""
    return dict(COMPONENTS[component].stamps)[VELERO_VERSION]


def registry_folder() -> Path:
    """Return where the images are, as a registry keeps them: keyed by everything that is in them."""
    parts = [cached_folder(component_named(name)).name for name in ("pause", "velero", "velero-aws")]
    parts += [cached_folder(component_named(name)).name for name in ("velero-helpers", "velero-aws-helpers")]
    return programs_folder() / f"node-images-{_digest(parts, _RECIPE)}"


def base_folder() -> Path:
    """Return where the base of the project's image is: Debian with Python, as a tar file."""
    return programs_folder() / f"node-base-{_digest(_SUITE, _BASE_PACKAGES)}"


def postgres_folder() -> Path:
    """Return where the image with PostgreSQL is, as a registry keeps it."""
    return programs_folder() / f"node-postgres-{_digest(_SUITE, _POSTGRES_PACKAGES, _NOT_OF_POSTGRES)}"


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr((parts, platform.machine())).encode()).hexdigest()[:16]


def build_images(say: Say) -> None:
    """Make the registry's images, if that has not been done."""
    with _building(registry_folder(), _IMAGES_MINUTES, say) as built:
        if built is not None:
            with serve_registry(built, built.parent) as server:
                for image in _images():
                    _build(image, built.parent, server)
                    say(f"node-images: {image.name}")


def build_base(say: Say) -> Path:
    """Make the base of the project's image, if that has not been done; return its tar file."""
    with _building(base_folder(), _DEBIAN_MINUTES, say) as built:
        if built is not None:
            _debian(built / "base.tar", _BASE_PACKAGES)
    return base_folder() / "base.tar"


def build_postgres(say: Say) -> Path:
    """Make an image with PostgreSQL, if that has not been done; return its folder."""
    with _building(postgres_folder(), _DEBIAN_MINUTES, say) as built:
        if built is not None:
            scratch = built.parent
            removed = " ".join(f'"$1"/{each}' for each in _NOT_OF_POSTGRES)
            _debian(scratch / "layer.tar", _POSTGRES_PACKAGES, f"--customize-hook=rm -rf {removed}")
            with serve_registry(built, scratch) as server:
                _push_layer(scratch, ["FROM scratch", "ADD layer.tar /"], POSTGRES, server)
    return postgres_folder()


@contextmanager
def _building(folder: Path, minutes: float, say: Say) -> Iterator[Path | None]:
    """Give a folder to fill, which gets its final name when the block ends; nothing if there is one of that name."""
    name = folder.name.rpartition("-")[0]
    with only_one(name), tempfile.TemporaryDirectory(dir=programs_folder(), prefix=f".{name}-") as scratch:
        if folder.exists():
            yield None
            return
        began = time.monotonic()
        say(f"{name}: building, about {minutes:g} min")
        built = Path(scratch) / "built"
        built.mkdir()
        yield built
        built.rename(folder)  # the commit: a folder of the final name is complete
    say(f"{name}: built in {time.monotonic() - began:.0f} s")


def _debian(tar: Path, packages: Sequence[str], *options: str) -> None:
    include = f"--include={','.join(packages)}"
    _run(command("mmdebstrap"), "--quiet", "--variant=minbase", include, *options, _SUITE, str(tar))


def _images() -> list[Image]:
    busybox = Path(command("busybox"))
    names = _run(str(busybox), "--list").split()
    velero = {
        "velero": program("velero", "velero"),
        "velero-helper": program("velero-helpers", "velero-helper"),
        "velero-restore-helper": program("velero-helpers", "velero-restore-helper"),
    }
    plugin = {
        "bin/cp-plugin": program("velero-aws-helpers", "cp-plugin"),
        "plugins/velero-plugin-for-aws": program("velero-aws", "velero-plugin-for-aws"),
    }
    copy = ("/bin/cp-plugin", "/plugins/velero-plugin-for-aws", "/target/velero-plugin-for-aws")
    links = tuple(f"bin/{name}" for name in names if name != "busybox")
    return [
        Image(PAUSE, {"pause": program("pause", "pause")}, "65535", ("/pause",)),
        Image(BUSYBOX, {"bin/busybox": busybox}, "0", (), links, ("root",), ("PATH=/bin",)),
        # Velero keeps its repositories' caches in its home: if that is not its own, file-system backups fail.
        Image(f"velero/velero:{velero_tag('velero')}", velero, "1000", (), (), ("home/cnb",), ("HOME=/home/cnb",)),
        Image(f"velero/velero-plugin-for-aws:{_PLUGIN_TAG}", plugin, "65532", copy),
    ]


def _build(image: Image, scratch: Path, server: str) -> None:
    write_layer(image, scratch / "layer.tar")
    lines = ["FROM scratch", "ADD layer.tar /", f"USER {image.user}:{image.user}"]
    lines += [f"ENV {each}" for each in image.environment]
    lines += [f"ENTRYPOINT {json.dumps(image.command)}"] if image.command else []
    _push_layer(scratch, lines, image.name, server)


def _push_layer(scratch: Path, lines: Sequence[str], name: str, server: str) -> None:
    """Build an image of the file layer.tar in that folder, push it, and remove the file."""
    context = scratch / "context"
    context.mkdir()
    (scratch / "layer.tar").rename(context / "layer.tar")
    (context / "Containerfile").write_text("\n".join(lines))
    storage = _storage(scratch / "storage")
    _run(*storage, "bud", "--quiet", "--isolation=chroot", f"--tag={name}", str(context))
    _run(*storage, "push", "--quiet", "--tls-verify=false", name, f"docker://{server}/{repository(name)}")
    shutil.rmtree(context)


def repository(name: str) -> str:
    """Return the name under which the node's registry has an image: without the registry that the name asks for."""
    first, _, rest = name.partition("/")
    if not rest:
        return f"library/{name}"
    return rest if "." in first or ":" in first or first == "localhost" else name


def write_layer(image: Image, path: Path) -> None:
    """Write the files of an image as its one layer."""
    with tarfile.open(path, "w") as layer:

        def add(name: str, kind: bytes, mode: int, *, owner: int = 0, link: str = "", data: bytes = b"") -> None:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode, entry.linkname, entry.size = kind, mode, link, len(data)
            entry.uid = entry.gid = owner
            layer.addfile(entry, io.BytesIO(data))

        folders = {str(parent) for name in image.files for parent in Path(name).parents if str(parent) != "."}
        for name in sorted(folders):
            add(name, tarfile.DIRTYPE, 0o755)
        add("tmp", tarfile.DIRTYPE, 0o1777)
        for home in image.homes:
            add(home, tarfile.DIRTYPE, 0o755, owner=int(image.user))
        for name, file in image.files.items():
            add(name, tarfile.REGTYPE, 0o755, data=file.read_bytes())
        for name in image.links:
            add(name, tarfile.SYMTYPE, 0o777, link="/" + next(iter(image.files)))


@contextmanager
def serve_registry(data: Path, scratch: Path) -> Iterator[str]:
    """Serve a registry on that folder until the block ends."""
    port = next(number for number in range(19_000, 20_000) if ports.is_free(number))
    address = f"127.0.0.1:{port}"
    config = {
        "version": "0.1",
        "log": {"level": "error"},
        "storage": {"filesystem": {"rootdirectory": str(data)}},
        "http": {"addr": address},
    }
    (scratch / "registry.json").write_text(json.dumps(config))
    serve = [command("docker-registry"), "serve", str(scratch / "registry.json")]
    process = subprocess.Popen(serve, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while not is_ok(f"http://{address}/v2/"):
            if process.poll() is not None or time.monotonic() > deadline:
                raise TestbedError("docker-registry does not start", f"run it: {' '.join(serve)}")
            time.sleep(0.05)
        yield address
    finally:
        process.kill()
        process.wait()


def _storage(folder: Path) -> list[str]:
    """Return buildah with a storage of its own, so that it neither reads nor changes the user's images."""
    return [command("buildah"), f"--root={folder}", f"--runroot={folder}-run", "--storage-driver=overlay"]


def project_storage() -> list[str]:
    """Return buildah with the storage in which the project's image and its layers are kept between runs."""
    return _storage(programs_folder() / "node-buildah")


def build_project(checkout: Path, name: str, say: Say, options: Sequence[str] = ()) -> None:
    """Build an image from the project's Containerfile, unchanged, upon a base made of Debian's packages."""
    with only_one("node-buildah"):
        for base in base_names((checkout / "Containerfile").read_text()):
            _tag_base(build_base(say), base, say)
        began = time.monotonic()
        _run(
            *project_storage(), "bud", "--quiet", "--layers", "--isolation=chroot", "--network=host", "--pull-never",
            *options, *_index_options(), f"--tag={name}", f"--file={checkout / 'Containerfile'}", str(checkout),
        )  # fmt: skip
        say(f"{name}: built in {time.monotonic() - began:.0f} s")


def base_names(containerfile: str) -> list[str]:
    """Return the images upon which a Containerfile builds, without its own stages; an argument has its default."""
    for name, value in re.findall(r"^ARG (\w+)=(\S+)$", containerfile, re.MULTILINE):
        containerfile = containerfile.replace(f"${{{name}}}", value)
    stages = [line.split()[1:] for line in containerfile.splitlines() if line.startswith("FROM ")]
    own = {words[-1] for words in stages if len(words) > 1}
    return list(dict.fromkeys(words[0] for words in stages if words[0] not in own))


def base_tag(name: str) -> str:
    """Return the tag by which buildah finds a base that was made here when a Containerfile asks for this name."""
    return f"localhost/{name}"


def _tag_base(tar: Path, name: str, say: Say) -> None:
    tag = f"localhost/{tar.parent.name}:1"
    if not _run(*project_storage(), "images", "--quiet", "--filter", f"reference={tag}"):
        say(f"{name}: adding {tar.name} as {tag}")
        with tempfile.NamedTemporaryFile("w") as recipe:
            recipe.write(f"FROM scratch\nADD {tar.name} /\n")
            recipe.flush()
            file = f"--file={recipe.name}"
            _run(*project_storage(), "bud", "--quiet", "--isolation=chroot", f"--tag={tag}", file, str(tar.parent))
    _run(*project_storage(), "tag", tag, base_tag(name))


def _index_options() -> list[str]:
    """Return what lets pip reach this machine's package index while an image is built, and stays out of the image."""
    mounts = ["--volume=/etc/ssl/certs:/etc/ssl/certs:ro"] if Path("/etc/ssl/certs").exists() else []
    places = (os.environ.get("PIP_CONFIG_FILE", ""), Path.home() / ".config/pip/pip.conf", "/etc/pip.conf")
    file = next((place for place in places if Path(place).is_file()), None)
    return mounts + ([f"--volume={file}:/etc/pip.conf:ro"] if file else [])


def push_project(name: str, server: str) -> None:
    """Push the project's image to a registry."""
    with only_one("node-buildah"):
        target = f"docker://{server}/{repository(name)}"
        _run(*project_storage(), "push", "--quiet", "--tls-verify=false", name, target)


def tag(server: str, image: str, name: str) -> None:
    """Give an image of a registry another tag: its manifest is stored once more."""
    path, _, old = repository(image).rpartition(":")
    wanted, _, new = repository(name).rpartition(":")
    if wanted != path:
        raise TestbedError(f"image {name} is in another repository than {image}", f"name it {path}:{new}")
    connection = http.client.HTTPConnection(server, timeout=30)
    try:
        connection.request("GET", f"/v2/{path}/manifests/{old}", headers={"Accept": MANIFEST})
        answer = connection.getresponse()
        manifest = answer.read()
        connection.request("PUT", f"/v2/{path}/manifests/{new}", manifest, {"Content-Type": MANIFEST})
        stored = connection.getresponse()
        said = stored.read().decode()
    finally:
        connection.close()
    if stored.status != http.client.CREATED:
        raise TestbedError(f"image {image} gets no tag {new}: code {stored.status}: {said}", "is it in the registry?")


def _run(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=_SECONDS)
    if done.returncode != 0:
        tail = "\n".join((done.stderr or done.stdout).splitlines()[-15:])
        raise TestbedError(f"{' '.join(words)}: code {done.returncode}:\n{tail}", "run it by hand to see all of it")
    return done.stdout
