"""HTML that the report and the console share."""
