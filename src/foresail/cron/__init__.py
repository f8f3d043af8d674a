"""The schedule language: parse, next and previous fire, shift, describe."""
