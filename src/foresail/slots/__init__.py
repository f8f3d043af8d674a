"""The slots of anything that recurs: which one is due, which are skipped, and what must be remembered of them."""
