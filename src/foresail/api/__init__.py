"""The wire types of every kind that Foresail reads or owns, and the CRDs rendered from them."""
