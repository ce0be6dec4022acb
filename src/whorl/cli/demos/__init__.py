"""The demos: small generated worlds, a program for each, and what is shown while its views follow."""
