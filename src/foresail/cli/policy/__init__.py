"""`foresail policy`: who may back up and restore what."""
