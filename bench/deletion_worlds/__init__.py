"""Random histories in which everything goes wrong at once, and a model that judges each deletion of a Backup."""
