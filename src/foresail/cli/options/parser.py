"""The parser of every command: no abbreviations, options filled in late, true-or-false options without a value."""

import argparse
from collections.abc import Callable
from typing import Any

from foresail.cli.options.booleans import BooleanOption, with_values


class CommandParser(argparse.ArgumentParser):
    """A parser that refuses abbreviations and can be filled just before it parses."""

    fill: Callable[[argparse.ArgumentParser], None] | None = None
    """Adds the options and verbs; every command would pay for them, and few need them."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:  # noqa: ANN401 - argparse's
        super().__init__(*arguments, **{"allow_abbrev": False, **settings})

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # noqa: ANN401 - argparse's
        """Parse as usual, with all options in place and a value for each true-or-false option."""
        fill, self.fill = self.fill, None
        if fill is not None:
            fill(self)
        options = {text for each in self._actions if isinstance(each, BooleanOption) for text in each.option_strings}
        return super().parse_known_args(with_values(args, options) if options else args, namespace)
