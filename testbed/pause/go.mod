module foresail/testbed/pause

go 1.26.0
