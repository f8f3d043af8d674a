"""Whether a namespace is safe: what everybody asks, from coverage to the Protection of a team."""
