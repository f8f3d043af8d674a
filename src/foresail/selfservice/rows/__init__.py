"""Flat rows of the objects that decisions depend on."""
