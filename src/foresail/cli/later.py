"""A command whose words are added when it is chosen: every run would pay for them, and few need them."""

import argparse
from collections.abc import Callable
from typing import Any


class Later(argparse.ArgumentParser):
    """A parser that is filled just before it parses, if somebody has said with what."""

    fill: Callable[[argparse.ArgumentParser], None] | None = None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # noqa: ANN401 - argparse's
        """Parse as usual, with everything in place."""
        fill, self.fill = self.fill, None
        if fill is not None:
            fill(self)
        return super().parse_known_args(args, namespace)
