"""How Velero's server is started with its schedule controller off, and on again: pure functions of its arguments."""

from collections.abc import Iterator, Sequence

FLAG = "--disable-controllers"
_SCHEDULE = "schedule"


def switched_off(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with the schedule controller off; others that are off stay in the same list."""
    found = list(arguments)
    for place, listed in _lists(found):
        if _SCHEDULE not in listed:
            found[place] = _written(found[place], [*listed, _SCHEDULE])
        return found
    return [*found, f"{FLAG}={_SCHEDULE}"]


def switched_on(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with the schedule controller on; others that are off stay off."""
    found: list[str | None] = [*arguments]
    for place, listed in _lists(arguments):
        if _SCHEDULE not in listed:
            continue
        left = [each for each in listed if each != _SCHEDULE]
        if left:
            found[place] = _written(arguments[place], left)
        else:
            found[place] = None
            if not arguments[place].startswith(FLAG):  # the list was a word of its own, after the flag
                found[place - 1] = None
    return [each for each in found if each is not None]


def others_off(arguments: Sequence[str]) -> list[str]:
    """Return the controllers that are off beside that of schedules."""
    return [each for _, listed in _lists(arguments) for each in listed if each != _SCHEDULE]


def _lists(arguments: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield each list of controllers with its place; the flag may be given twice, and its list may follow as a word."""
    for place, argument in enumerate(arguments):
        name, is_one_word, value = argument.partition("=")
        if name == FLAG and is_one_word:
            yield place, _names(value)
        elif place and arguments[place - 1] == FLAG:
            yield place, _names(argument)


def _names(text: str) -> list[str]:
    return [name for each in text.split(",") if (name := each.strip())]


def _written(before: str, names: Sequence[str]) -> str:
    return (f"{FLAG}=" if before.startswith(FLAG) else "") + ",".join(names)
