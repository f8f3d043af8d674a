"""Colour, where somebody looks at it: on a terminal, unless NO_COLOR is set."""

import os
from typing import TextIO

GREEN, YELLOW, RED, BOLD, PALE = "32", "33", "31", "1", "2"


def painted(text: str, colour: str, stream: TextIO) -> str:
    """Return the text in a colour if the stream is a terminal that may show colours."""
    if not text or os.environ.get("NO_COLOR") or not stream.isatty():
        return text
    return f"\033[{colour}m{text}\033[0m"
