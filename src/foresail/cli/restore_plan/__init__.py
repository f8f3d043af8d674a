"""`foresail plan` and `foresail restore plan`: what a restore would do, by dry runs."""
