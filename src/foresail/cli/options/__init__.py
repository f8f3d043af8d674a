"""What users type: parsers, options and their values."""
