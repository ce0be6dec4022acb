"""One partition of a program: arrays, state, operators, and the strategies that maintain its strata."""
