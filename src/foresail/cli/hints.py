"""What a user should know beside the answer: said on standard error, so that the answer stays clean."""

import sys


def hint(text: str) -> None:
    """Say something that is no error."""
    print(f"hint: {text}", file=sys.stderr)
