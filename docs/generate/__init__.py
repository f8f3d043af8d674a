"""Writes the reference pages from the code that they are about: `make docs`, which is `python -m docs.generate`.

Not part of the wheel. A test compares the pages with what this would write.
"""
