"""What commands print: tables, times, objects, progress and messages."""
