"""The option -o with the forms that a verb can print."""

import argparse

JSONPATH = "jsonpath="
_TABLES = ("table", "wide")
_OF_OBJECTS = (*_TABLES, "json", "yaml", "name")


class Forms(list[str]):
    """The forms that a verb prints; `jsonpath=` matches every template."""

    def __contains__(self, form: object) -> bool:
        """Return whether a form is known."""
        is_template = isinstance(form, str) and form.startswith(JSONPATH) and list.__contains__(self, JSONPATH)
        return is_template or list.__contains__(self, form)


def is_table(form: str) -> bool:
    """Return whether people read it: no document, and no names."""
    return form in _TABLES


def add_object_output(to: argparse.ArgumentParser, more: str = "") -> None:
    """Add -o to a verb that prints objects: the same forms in each of them."""
    add_output(to, *_OF_OBJECTS, more=more)


def add_output(to: argparse.ArgumentParser, *forms: str, default: str = "table", more: str = "") -> None:
    """Add -o; a verb that prints JSON takes JSONPath templates too."""
    known = Forms([*forms, *([JSONPATH] if "json" in forms else [])])
    shown = "|".join(f"{each}TEMPLATE" if each == JSONPATH else each for each in known)
    text = f"{more} (default: {default})".strip()
    to.add_argument("-o", "--output", choices=known, default=default, metavar=shown, help=text)
