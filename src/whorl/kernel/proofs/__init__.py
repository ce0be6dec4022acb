"""Why a row is there, and why it is not: searches over the state of a partition, which they leave as it is.

`derivations` tells all ways in which a row follows from rows alive now, whoever maintains it. `search` finds a
shortest proof among them; where that would take too long, `ranks` lead to some proof quickly. `misses` looks for what
keeps a rule from deriving a row.
"""
