"""`foresail coverage`: what is backed up, and what is not."""
