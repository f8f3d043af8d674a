"""Buckets of the S3 server as folders: what whoever may write to them can do there."""

import json
import shutil
from collections.abc import Mapping
from hashlib import md5
from pathlib import Path
from typing import Any

NACUUID = "openshift.io/oadp-nab-origin-nacuuid"
ORIGIN_NAMESPACE, ORIGIN_NAME = "openshift.io/oadp-nab-origin-namespace", "openshift.io/oadp-nab-origin-name"


def annotations_in(backup: Path) -> dict[str, str]:
    """Return the annotations of a Backup as the bucket has them."""
    return dict(json.loads((backup / "velero-backup.json").read_text())["metadata"]["annotations"])


def copy_backup(of: Path, name: str, annotations: Mapping[str, str]) -> None:
    """Put a copy of a backup beside it, under another name and with other annotations."""
    to = of.parent / name
    to.mkdir()
    for file in of.iterdir():
        shutil.copyfile(file, to / file.name.replace(of.name, name))
    written: dict[str, Any] = json.loads((of / "velero-backup.json").read_text())
    written["metadata"]["name"] = name
    written["metadata"]["labels"][NACUUID] = name
    written["metadata"]["annotations"] = dict(annotations)
    (to / "velero-backup.json").write_text(json.dumps(written))


def move_bucket(source: Path, to: Path) -> None:
    """Put everything that an S3 server has into the folder of another one."""
    for part in ("data", "meta"):
        shutil.copytree(source / part, to / part, dirs_exist_ok=True)


def put_object(folders: Path, bucket: str, key: str, content: bytes) -> None:
    """Put an object into a bucket, which is made if need be, with the ETag that the server keeps beside it."""
    etag = md5(content, usedforsecurity=False).hexdigest()
    for file, what in (
        (folders / "data" / bucket / key, content),
        (folders / "meta" / bucket / key / "meta" / "etag", f'"{etag}"'.encode()),
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(what)
