"""`foresail install` and `foresail uninstall`: Foresail into a cluster, and out of it without a trace."""
