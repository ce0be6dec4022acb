"""One partition to a folder and back.

A partition's folder stands alone: whoever has the folder and the plan can go on from it, in any process. The next
epochs then give exactly what the partition would have given that was saved.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from whorl.diagnostics.errors import UserError
from whorl.kernel.partition import Partition
from whorl.kernel.state.snapshot import (
    Content,
    check_file,
    describe_file,
    read_dictionary,
    read_manifest,
    read_relation,
    write_dictionary,
    write_manifest,
    write_relation,
)
from whorl.kernel.strategies.stratum import Remembering, Resumable
from whorl.model.limits import Limits
from whorl.physical.fingerprint import fingerprint_layout, fingerprint_program
from whorl.physical.plan import PhysicalPlan

DICTIONARY = "dictionary.arrow"


def save_partition(partition: Partition, folder: Path) -> int:
    """Write the state of a partition, between two epochs, to a folder; return the checksum of its manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    plan = partition.plan
    write_dictionary(folder / DICTIONARY, partition.state.dictionary)
    files: dict[str, str] = {}
    for number, (name, relation) in enumerate(sorted(partition.state.relations.items())):
        files[name] = f"relation-{number:03}.arrow"
        base = partition.base.get(name)
        write_relation(folder / files[name], relation, None if base is None else base.save())
    content: Content = {
        "program": fingerprint_program(plan.logical.program),
        "layout": fingerprint_layout(plan),
        "number": partition.number,
        "partitions": partition.partitions,
        "stepped": partition.stepped,
        "stale": sorted(partition.stale),
        "relations": files,
        "memos": {
            str(at): each.memo() for at, each in enumerate(partition.strategies) if isinstance(each, Remembering)
        },
        "files": {name: describe_file(folder / name) for name in (DICTIONARY, *files.values())},
    }
    return write_manifest(folder, content)


def load_partition(folder: Path, plan: PhysicalPlan, limits: Limits) -> Partition:
    """Return the partition that a folder holds; the plan must be the one it was saved under."""
    content = read_manifest(folder)
    check_fingerprint(folder, content["program"], fingerprint_program(plan.logical.program))
    check_fingerprint(folder, content["layout"], fingerprint_layout(plan))
    partition = _load(folder, content, plan, limits, list(content["relations"]))
    if partition.stepped:
        partition.stale = set(content["stale"])
        for exchange in partition.exchanges.values():
            exchange.resume()
        for at, strategy in enumerate(partition.strategies):
            if at in partition.stale:
                continue
            if isinstance(strategy, Remembering):
                strategy.recall(content["memos"][str(at)])
            if isinstance(strategy, Resumable):
                strategy.resume()
    return partition


def load_base(folder: Path, plan: PhysicalPlan, limits: Limits) -> Partition:
    """Return a partition with the base facts of a folder only: to be placed anew under another plan of the program."""
    content = read_manifest(folder)
    check_fingerprint(folder, content["program"], fingerprint_program(plan.logical.program))
    base = [relation.name for relation in plan.logical.program.base_relations()]
    return _load(folder, content, plan, limits, base)


def check_fingerprint(folder: Path, found: str, expected: str) -> None:
    """Raise if saved state belongs to another program."""
    if found != expected:
        raise UserError("E684", None, path=folder, found=found, expected=expected)


def _load(folder: Path, content: Content, plan: PhysicalPlan, limits: Limits, names: list[str]) -> Partition:
    for name, wanted in content["files"].items():
        check_file(folder / name, wanted)
    partition = Partition(plan, limits, number=content["number"], partitions=content["partitions"])
    _reading(folder / DICTIONARY, read_dictionary, partition.state.dictionary)
    for name in names:
        facts = _reading(folder / content["relations"][name], read_relation, partition.state.relations[name])
        if facts is not None:
            partition.base[name].load(facts)
    partition.stepped = content["stepped"]
    return partition


def _reading(path: Path, read: Any, target: object) -> Any:
    """Read a file that is whole; what Arrow does not understand in it is damage all the same."""
    try:
        return read(path, target)
    except (pa.ArrowException, KeyError, ValueError, OSError) as error:
        raise UserError("E685", None, path=path, reason=f"{error}".rstrip(".")) from None
