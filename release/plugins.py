"""Writes what krew and Homebrew install: `python -m release.plugins FILE https://host/owner/name`.

Beside foresail.pyz it writes an archive with it, the manifest of a krew plugin and a Homebrew formula. Both name the
archive by its address in the release and by its checksum.
"""

import gzip
import hashlib
import io
import re
import sys
import tarfile
from pathlib import Path
from urllib.parse import urlsplit

from foresail import TAGLINE, __version__

ROOT = Path(__file__).parents[1]
ARCHIVE = f"kubectl-foresail-{__version__}.tar.gz"
_FORMULA_PYTHON = "3.13"

_KREW = """apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: foresail
spec:
  version: v{version}
  homepage: {home}
  shortDescription: Backups that teams run, schedules and checks for Velero
  description: |
    {tagline}
    Finds what Velero does not protect, previews restores, and runs backups and
    restores of your own namespace. "coverage", "report", "plan" and "doctor"
    install nothing in the cluster.
  caveats: |
    Needs Python 3.11 or newer on the PATH, and Velero in the cluster.
    Try: kubectl foresail coverage
  platforms:
  - selector:
      matchExpressions:
      - {{key: os, operator: In, values: [linux, darwin]}}
      - {{key: arch, operator: In, values: [amd64, arm64]}}
    uri: {url}
    sha256: {checksum}
    bin: foresail.pyz
    files:
    - {{from: foresail.pyz, to: .}}
    - {{from: LICENSE, to: .}}
"""

_FORMULA = """class Foresail < Formula
  desc "{description}"
  homepage "{home}"
  url "{url}"
  sha256 "{checksum}"
  license "Apache-2.0"

  depends_on "python@{python}"

  def install
    libexec.install "foresail.pyz"
    (bin/"foresail").write <<~SH
      #!/bin/sh
      exec "#{{Formula["python@{python}"].opt_bin}}/python{python}" "#{{libexec}}/foresail.pyz" "$@"
    SH
    chmod 0755, bin/"foresail"
    bin.install_symlink "foresail" => "kubectl-foresail"
  end

  test do
    assert_match "client    #{{version}}", shell_output("#{{bin}}/foresail version --client")
  end
end
"""


def archive(file: Path) -> bytes:
    """Return an archive of the one file and the licence, whose bytes depend on their contents only."""
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", filename="", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for name, content, mode in (
            ("foresail.pyz", file.read_bytes(), 0o755),
            ("LICENSE", (ROOT / "LICENSE").read_bytes(), 0o644),
        ):
            about = tarfile.TarInfo(name)
            about.size, about.mode = len(content), mode
            tar.addfile(about, io.BytesIO(content))
    return buffer.getvalue()


def krew(home: str, checksum: str) -> str:
    """Return the manifest of the krew plugin."""
    return _KREW.format(home=home, url=_url(home), checksum=checksum, version=__version__, tagline=TAGLINE)


def formula(home: str, checksum: str) -> str:
    """Return the Homebrew formula; Homebrew wants a description without a full stop."""
    return _FORMULA.format(
        home=home,
        url=_url(home),
        checksum=checksum,
        description=TAGLINE.rstrip("."),
        python=_FORMULA_PYTHON,
    )


def _url(home: str) -> str:
    return f"{home}/releases/download/v{__version__}/{ARCHIVE}"


def write(file: Path, home: str) -> None:
    """Write archive, manifest and formula beside the one file."""
    home = home.rstrip("/")
    if urlsplit(home).scheme != "https" or re.search(r"[\s\"#{}]", home):
        raise SystemExit(f"{home} does not start with https://: pass the address of the repository")
    content = archive(file)
    checksum = hashlib.sha256(content).hexdigest()
    file.with_name(ARCHIVE).write_bytes(content)
    file.with_name("foresail.yaml").write_text(krew(home, checksum))
    file.with_name("foresail.rb").write_text(formula(home, checksum))


if __name__ == "__main__":
    write(Path(sys.argv[1]), sys.argv[2])
