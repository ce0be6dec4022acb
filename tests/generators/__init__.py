"""Random inputs for property tests: syntax trees, valid programs, streams of changes.

>>> from tests.generators import WINDOWED, cases, programs, streams, syntax_trees

`programs(shape)` gives programs with their base relations, `streams(program)` epochs of changes for one, and
`cases(shape)` both together.
"""

from tests.generators.changes import cases, insert_streams, streams
from tests.generators.programs import programs
from tests.generators.schema import PLAIN, WINDOWED, BaseRelation, Domain, GeneratedProgram, Shape
from tests.generators.trees import syntax_trees

__all__ = [
    "PLAIN",
    "WINDOWED",
    "BaseRelation",
    "Domain",
    "GeneratedProgram",
    "Shape",
    "cases",
    "insert_streams",
    "programs",
    "streams",
    "syntax_trees",
]
