"""The README of the chart, with a table of its values."""

from pathlib import Path

from docs.generate.settings import values
from docs.generate.tables import table
from foresail import TAGLINE, __version__

FILE = Path(__file__).parents[2] / "charts" / "foresail" / "README.md"
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
