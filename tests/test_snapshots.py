"""State saved and restored: the next epochs give exactly what they would have given without the stop."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.generators import PLAIN, WINDOWED, GeneratedProgram, cases
from tests.golden_cases import Case as GoldenCase
from tests.golden_cases import cases as golden_cases
from tests.test_partitions import PIVOT, _random_links
from whorl.cli.files import load_functions, read_source
from whorl.diagnostics.errors import ProgramErrors, UserError
from whorl.diagnostics.source import Source
from whorl.hosts.inprocess import InProcess
from whorl.kernel.resume import load_partition, save_partition
from whorl.kernel.state import snapshot as files
from whorl.kernel.state.dictionary import Dictionary
from whorl.kernel.state.relation import StoredRelation
from whorl.logical.compile import compile_program
from whorl.logical.intake import Compile
from whorl.model.delta import Change, Epoch
from whorl.model.limits import Limits
from whorl.model.types import Type
from whorl.model.values import Term, Value
from whorl.syntax.deltas import parse_deltas

Case = tuple[GeneratedProgram, tuple[Epoch, ...]]
STRATEGIES = ["auto", "expiry", "dred", "support", "derivations"]


def _compile(text: str) -> Compile:
    source = Source("test.dl", text)
    return lambda types: compile_program(source, data_types=types)


def _commit(host: InProcess, epoch: Epoch) -> object:
    """Return what an epoch gives: its deltas and counts, or the code of the error that refuses it."""
    try:
        report = host.commit(epoch)
    except UserError as error:
        return error.code
    return dict(report.deltas), report.counts


def _same(host: InProcess, other: InProcess) -> bool:
    return all(host.rows(output.name) == other.rows(output.name) for output in host.plan.outputs)


# The property


def _check(
    case: Case, strategy: str, partitions: int, stop: int, after: int | None, limits: Limits | None = None
) -> None:
    """Stop at an epoch and go on, in ``after`` partitions; compare with a host that never stopped."""
    program, epochs = case
    try:
        host = InProcess(_compile(program.text), limits, strategy, partitions)
    except UserError as refused:  # the strategy does not serve such programs
        assert refused.code == "E402"
        return
    for epoch in epochs[:stop]:
        _commit(host, epoch)
    with TemporaryDirectory() as folder:
        host.save(folder)
        resumed = InProcess.restore(folder, _compile(program.text), limits, strategy, after)
    assert (resumed.epoch, resumed.time) == (host.epoch, host.time)
    assert _same(host, resumed), program.text
    for epoch in epochs[stop:]:
        assert _commit(resumed, epoch) == _commit(host, epoch), program.text
        assert _same(host, resumed), program.text


@settings(max_examples=40)
@given(
    case=cases(PLAIN),
    strategy=st.sampled_from(STRATEGIES),
    stop=st.integers(0, 5),
    partitions=st.sampled_from([1, 3]),
)
def test_going_on_from_a_snapshot(case: Case, strategy: str, stop: int, partitions: int) -> None:
    _check(case, strategy, partitions, stop, None)


@settings(max_examples=60)
@given(
    case=cases(WINDOWED),
    strategy=st.sampled_from(STRATEGIES),
    stop=st.integers(0, 5),
    partitions=st.sampled_from([1, 3]),
)
def test_going_on_from_a_snapshot_in_windows(case: Case, strategy: str, stop: int, partitions: int) -> None:
    _check(case, strategy, partitions, stop, None)


@settings(max_examples=30)
@given(case=cases(WINDOWED), stop=st.integers(1, 5), tuples=st.integers(1, 12))
def test_going_on_after_refused_epochs(case: Case, stop: int, tuples: int) -> None:
    """What a refused epoch left beside the rows is not taken for their labels."""
    _check(case, "auto", 2, stop, None, Limits(tuples=tuples))


@settings(max_examples=30)
@given(case=cases(WINDOWED), stop=st.integers(0, 5), both=st.sampled_from([(1, 2), (3, 1), (2, 5), (1, 1)]))
def test_going_on_in_another_number_of_partitions(case: Case, stop: int, both: tuple[int, int]) -> None:
    _check(case, "auto", both[0], stop, both[1])


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("shape", [PLAIN, WINDOWED], ids=["plain", "windowed"])
def test_going_on_at_length(shape: object, strategy: str) -> None:
    @settings(max_examples=500)
    @given(
        case=cases(shape),  # type: ignore[arg-type]
        stop=st.integers(0, 5),
        both=st.sampled_from([(1, None), (3, None), (3, 2)]),
    )
    def check(case: Case, stop: int, both: tuple[int, int | None]) -> None:
        _check(case, strategy, both[0], stop, both[1])

    check()


@pytest.mark.parametrize("case", golden_cases(), ids=lambda case: case.name)
def test_golden_cases_with_a_stop_on_the_way(case: GoldenCase, tmp_path: Path) -> None:
    program, functions = read_source(case.folder / "program.dl"), load_functions(case.functions_path())
    limits = Limits(**case.options())

    def compile_plan(types: Any) -> Any:
        return compile_program(program, functions, types)

    try:
        host = InProcess(compile_plan, limits, partitions=2)
        stopping = InProcess(compile_plan, limits, partitions=2)
        epochs = parse_deltas(read_source(case.folder / "input.deltas"))
        for at, epoch in enumerate(epochs):
            assert _commit(stopping, epoch) == _commit(host, epoch)
            if at == len(epochs) // 2:
                stopping.save(tmp_path)
                stopping = InProcess.restore(tmp_path, compile_plan, limits)
    except ProgramErrors:  # the program itself is refused once data tells its types
        return


def test_another_strategy_derives_the_views_again(tmp_path: Path) -> None:
    host = InProcess(_compile(PIVOT), strategy="dred")
    host.commit(Epoch(1, _random_links(1, 20, 40)))
    host.save(tmp_path)
    resumed = InProcess.restore(tmp_path, _compile(PIVOT), strategy="support")
    assert resumed.rows("reachable") == host.rows("reachable")
    gone = Epoch(2, tuple(Change("link", change.row, -1) for change in _random_links(1, 20, 40)[::3]))
    assert dict(resumed.commit(gone).deltas) == dict(host.commit(gone).deltas)


def test_what_is_restored_need_not_be_derived(tmp_path: Path) -> None:
    host = InProcess(_compile(PIVOT), partitions=2)
    first = host.commit(Epoch(1, _random_links(1, 60, 150)))
    host.save(tmp_path)
    second = InProcess.restore(tmp_path, _compile(PIVOT)).commit(Epoch(2, (Change("link", (1000, 1001), 1),)))
    assert first.work is not None and second.work is not None
    assert first.work.derivations > 1_000
    assert second.work.derivations == 1


def test_a_partition_can_travel_alone(tmp_path: Path) -> None:
    host = InProcess(_compile(PIVOT), partitions=3)
    host.commit(Epoch(1, _random_links(1, 30, 60)))
    partition = host.partitions[2]
    save_partition(partition, tmp_path / "two")
    copy = load_partition(tmp_path / "two", partition.plan, Limits())
    assert (copy.number, copy.partitions) == (2, 3)
    gone = [Change("link", change.row, -1) for change in _random_links(1, 30, 60)[::4]]
    assert dict(copy.step(gone, None).deltas) == dict(partition.step(gone, None).deltas)


# Values


@given(
    values=st.lists(
        st.text() | st.sampled_from([1, True, 1.0, "\ud800", Term("p", (1, True, 1.0, "x", Term("[]", ())))]),
        unique_by=lambda value: (type(value), value),
    )
)
def test_dictionaries_keep_their_values(values: list[Value]) -> None:
    before, after = Dictionary(200), Dictionary(200)
    numbers = [before.number(value) for value in values]
    with TemporaryDirectory() as folder:
        files.write_dictionary(Path(folder) / "d.arrow", before)
        files.read_dictionary(Path(folder) / "d.arrow", after)
    assert [(type(value), value) for value in after.values()] == [(type(value), value) for value in values]
    assert [after.number(value) for value in values] == numbers


@pytest.mark.parametrize("largest", [5, 2**40, -3])
def test_relations_keep_their_rows(largest: int, tmp_path: Path) -> None:
    import numpy as np

    before, after = (StoredRelation("r", [Type.INTEGER] * 3) for _ in range(2))
    rows = np.array([[1, 2, 3], [4, 5, largest], [7, 8, 9]], np.int64)
    before.keep_labels()
    before.add(rows)
    before.labels[:3] = [10, 20, 30]
    before.settle()
    before.retire(np.array([1]))
    before.settle()
    files.write_relation(tmp_path / "r.arrow", before, None)
    assert files.read_relation(tmp_path / "r.arrow", after) is None
    assert after.read(after.alive()).tolist() == [[1, 2, 3], [7, 8, 9]]
    assert after.find(rows).tolist() == [0, 1, 2]
    assert after.labels[:3].tolist() == [10, 20, 30]
    assert after.add(np.array([[4, 5, largest], [0, 0, 1]], np.int64)).tolist() == [1, 3]


# The folder


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A snapshot of two partitions after one epoch."""
    host = InProcess(_compile(PIVOT), partitions=2)
    host.commit(Epoch(1, _random_links(1, 10, 20)))
    host.save(tmp_path / "snapshot")
    return tmp_path / "snapshot"


def _refused(folder: Path, text: str = PIVOT) -> str:
    with pytest.raises(UserError) as error:
        InProcess.restore(folder, _compile(text))
    return str(error.value).replace(f"{folder}", "FOLDER")


def test_files_of_a_snapshot(saved: Path) -> None:
    part = ["dictionary.arrow", "manifest.json", "relation-000.arrow", "relation-001.arrow"]
    found = sorted(str(path.relative_to(saved)) for path in saved.rglob("*") if path.is_file())
    assert found == [
        "manifest.json",
        *(f"state-1/partition-0/{name}" for name in part),
        *(f"state-1/partition-1/{name}" for name in part),
    ]


def test_a_new_snapshot_takes_the_place_of_the_old(saved: Path) -> None:
    host = InProcess.restore(saved, _compile(PIVOT))
    host.commit(Epoch(2, (Change("link", (77, 78), 1),)))
    host.save(saved)
    assert [path.name for path in sorted(saved.iterdir())] == ["manifest.json", "state-2"]
    assert InProcess.restore(saved, _compile(PIVOT)).epoch == 2


def test_a_save_that_ends_early_leaves_the_old_snapshot(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop at each file in turn, as a full disk would; the old snapshot can still be read, and the next save works."""
    host = InProcess.restore(saved, _compile(PIVOT))
    host.commit(Epoch(2, (Change("link", (77, 78), 1),)))
    fsync = os.fsync
    for allowed in range(12):
        left = [allowed]

        def limited(descriptor: int, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise OSError(28, "No space left on device")
            fsync(descriptor)

        monkeypatch.setattr(os, "fsync", limited)
        with pytest.raises(UserError) as error:
            host.save(saved)
        monkeypatch.setattr(os, "fsync", fsync)
        assert str(error.value) == (
            f'E686 the snapshot cannot be written to "{saved}"\n  Detail: No space left on device.'
        )
        # The last of all is after the renaming: the new snapshot counts, though it may not be on the disk yet.
        assert InProcess.restore(saved, _compile(PIVOT)).epoch == (1 if allowed < 11 else 2)
    host.save(saved)
    assert InProcess.restore(saved, _compile(PIVOT)).epoch == 2


def test_a_folder_without_a_snapshot(tmp_path: Path) -> None:
    assert _refused(tmp_path) == (
        'E682 the folder "FOLDER" holds no snapshot\n'
        "  Detail: FOLDER/manifest.json: No such file or directory.\n"
        "  Hint: Give a folder that a session was saved to."
    )


def test_a_snapshot_of_another_version(saved: Path) -> None:
    manifest = saved / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "whorl": 99}))
    assert _refused(saved) == (
        'E683 the snapshot in "FOLDER" has format version 99\n'
        "  Detail: This version of Whorl reads version 1.\n"
        "  Hint: Save it anew with a version of Whorl that reads it."
    )


def test_a_snapshot_of_another_program(saved: Path) -> None:
    assert _refused(saved, PIVOT.replace("link(X, Z), reachable(Z, Y)", "reachable(X, Z), link(Z, Y)")) == (
        'E684 the snapshot in "FOLDER" belongs to another program\n'
        "  Detail: It was saved for a program with the fingerprint cd2ce5bbf657b8f6; "
        "this program has 276a8c4933ea9914.\n"
        "  Hint: Restore it with the program it was saved for, or start anew."
    )


def test_comments_and_spaces_do_not_matter(saved: Path) -> None:
    restored = InProcess.restore(saved, _compile("# A comment.\n" + PIVOT.replace("), ", "),\n   ")))
    assert restored.epoch == 1
    report = restored.commit(Epoch(2, (Change("link", (77, 78), 1),)))
    assert report.work is not None and report.work.derivations == 1  # the state was taken as it is


def _parts(saved: Path) -> list[Path]:
    return sorted(path for path in saved.rglob("*") if path.is_file())


@pytest.mark.parametrize("which", range(9))
def test_missing_files_are_named(saved: Path, which: int) -> None:
    path = _parts(saved)[which]
    path.unlink()
    message = _refused(saved)
    if path.parent == saved:
        assert message.startswith('E682 the folder "FOLDER" holds no snapshot\n')
    else:
        assert message.startswith(f'E685 the file "FOLDER/{path.relative_to(saved)}" of a snapshot is damaged\n')


@pytest.mark.parametrize("which", range(9))
@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "longer"])
def test_damaged_files_are_named(saved: Path, which: int, damage: str) -> None:
    path = _parts(saved)[which]
    content = path.read_bytes()
    middle = len(content) // 2
    changed = {
        "truncated": content[:middle],
        "flipped": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
        "empty": b"",
        "longer": content + b"{}",
    }
    path.write_bytes(changed[damage])
    message = _refused(saved)
    assert message.startswith(f'E685 the file "FOLDER/{path.relative_to(saved)}" of a snapshot is damaged\n'), message
    assert "Hint: Restore the file from a copy, or start anew." in message


def test_what_is_wrong_with_a_file_is_said(saved: Path) -> None:
    path = saved / "state-1" / "partition-1" / "relation-001.arrow"
    path.write_bytes(path.read_bytes()[:-10])
    size = path.stat().st_size
    assert f"  Detail: Found {size} bytes, expected {size + 10}.\n" in _refused(saved)


def test_parts_of_two_snapshots_do_not_mix(saved: Path) -> None:
    """A whole part of another snapshot is not what the manifest vouches for."""
    shutil.copytree(saved / "state-1" / "partition-0", saved.parent / "old")
    host = InProcess.restore(saved, _compile(PIVOT))
    host.commit(Epoch(2, (Change("link", (77, 78), 1),)))
    host.save(saved)
    shutil.rmtree(saved / "state-2" / "partition-0")
    shutil.copytree(saved.parent / "old", saved / "state-2" / "partition-0")
    assert _refused(saved).startswith('E685 the file "FOLDER/state-2/partition-0/manifest.json" of a snapshot')


def test_fingerprints_are_the_same_in_every_process(saved: Path) -> None:
    """State must be taken as it is by another process, with other hashes of strings."""
    script = (
        "import sys; from whorl.diagnostics.source import Source; from whorl.hosts.inprocess import InProcess;"
        "from whorl.logical.compile import compile_program; from whorl.model.delta import Change, Epoch;"
        "h = InProcess.restore(sys.argv[1], lambda t: compile_program(Source('p', sys.argv[2]), data_types=t));"
        "print(h.commit(Epoch(2, (Change('link', (77, 78), 1),))).work.derivations)"
    )
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", script, str(saved), PIVOT],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=False,
        )
        assert (done.stdout, done.stderr) == ("1\n", "")
