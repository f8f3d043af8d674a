"""`python -m foresail` is the `foresail` command."""

import sys

from foresail.cli.main import main

sys.exit(main())
