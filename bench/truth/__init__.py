"""What every answer says about known states of a real cluster, beside a table of what is true."""
