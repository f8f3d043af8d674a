"""Texts of rows: shared where many objects have the same one, and dropped where a tenant's is too long."""

import sys

import msgspec

LONGEST_NAME = 253


def up_to(most: int, text: str) -> str:
    """Return a tenant's text if it is no longer than that, else nothing: a part of it could name someone else."""
    return text if len(text) <= most else ""


def interned(raw: msgspec.Raw) -> str:
    """Return JSON as text; equal ones are one object."""
    return sys.intern(bytes(raw).decode())
