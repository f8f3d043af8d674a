"""`foresail cron`: when does this fire? Works without a cluster."""
