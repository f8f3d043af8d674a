"""The callback of whoever does not want to know."""


def nothing(*_: object) -> None:
    """Do nothing."""
