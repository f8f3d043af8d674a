"""The README of the chart, with a table of its values, and what Artifact Hub shows about the kinds."""

from pathlib import Path

import yaml

from docs.generate.settings import values
from docs.generate.tables import table
from foresail import TAGLINE, __version__
from foresail.api import crds

FILE = Path(__file__).parents[2] / "charts" / "foresail" / "README.md"
KINDS = FILE.parents[1] / "foresail-crds" / "Chart.yaml"
_EXAMPLES = Path(__file__).parents[2] / "examples" / "manifests"
_MARK = "  # Written by `make docs` from here on.\n"
_TOP = f"""<!-- Written by `make docs`: change values.yaml, not this page. -->

# Foresail {__version__}

{TAGLINE}

The kinds are in the chart `foresail-crds`. Install it first, with the same version:

```console
$ helm install foresail-crds charts/foresail-crds --namespace velero
$ helm install foresail charts/foresail --namespace velero --set image.repository=REGISTRY/foresail
```

No image is published yet: `make image` builds it from the Containerfile.

## Values

Helm checks them against `values.schema.json`: it refuses a value that is misspelt.
"""


def readme() -> str:
    """Return the text of the file."""
    return "\n".join([_TOP, table(("value", "default", "meaning"), values())])


def kinds_chart() -> str:
    """Return Chart.yaml of the kinds: what stands above the mark, then each kind with its example."""
    kinds = [(found.kind, (found.type.__doc__ or "").partition("\n")[0]) for found in crds.DEFINITIONS]
    described = [
        {
            "kind": kind.name,
            "version": kind.version,
            "name": f"{kind.plural}.{kind.group}",
            "displayName": kind.name,
            "description": meaning,
        }
        for kind, meaning in kinds
    ]
    examples = [yaml.safe_load((_EXAMPLES / f"{kind.name.lower()}.yaml").read_text()) for kind, _ in kinds]
    top, _, _ = KINDS.read_text().partition(_MARK)
    return f"{top}{_MARK}{_annotation('crds', described)}{_annotation('crdsExamples', examples)}"


def _annotation(name: str, value: object) -> str:
    text = yaml.safe_dump(value, sort_keys=False, width=1000)
    return f"  artifacthub.io/{name}: |\n" + "".join(f"    {line}\n" for line in text.splitlines())
