"""The runtime, free of product knowledge: connect, client, watch, store, queue, loop, events, lease."""
