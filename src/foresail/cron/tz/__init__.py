"""Time zones from the pinned `tzdata`, with the results of Go's `time` package."""
