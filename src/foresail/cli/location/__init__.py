"""`foresail location`: buckets of tenants, and the administrator's decisions about them."""
