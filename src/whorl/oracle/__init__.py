"""The reference: recompute everything, plain sets, slow and obvious. Every strategy must equal it."""
