"""`foresail console`: the answers of the command line in a browser, with the user's own rights."""
