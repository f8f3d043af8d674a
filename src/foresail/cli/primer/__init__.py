"""`foresail primer`: capacity that is warm before a CronJob fires."""
