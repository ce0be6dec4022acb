"""What is measured inside a process: the CPU time of all its threads, those included that are running right now."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from hashlib import sha256
from statistics import median
from time import clock_gettime, pthread_getcpuclockid, sleep, thread_time

import pytest

from whorl.bench.measure import Meter

BLOCK = bytes(1 << 24)  # a thread that hashes it needs no interpreter lock for some ten milliseconds
SHORT_S = 0.001


def _hash_until(stop: threading.Event) -> None:
    while not stop.is_set():
        sha256(BLOCK)


def test_a_thread_that_is_running_is_counted_up_to_now() -> None:
    stop = threading.Event()
    worker = threading.Thread(target=_hash_until, args=(stop,))
    worker.start()
    assert worker.ident is not None
    clock = pthread_getcpuclockid(worker.ident)
    shares: list[float] = []
    while len(shares) < 40:
        before = clock_gettime(clock)
        with Meter() as spent:
            sleep(SHORT_S)
        true = clock_gettime(clock) - before
        if true > SHORT_S / 2:  # else it had no core
            shares.append(spent.cpu / true)
    stop.set()
    worker.join()
    assert 0.7 < median(shares) < 1.3


@pytest.fixture
def cores() -> Iterator[list[int]]:
    """Keep this thread on the first of its cores; return all of them."""
    usual = os.sched_getaffinity(0)
    if len(usual) < 2:
        pytest.skip("two threads take turns on one core, and each turn counts")
    first, *others = sorted(usual)
    os.sched_setaffinity(0, {first})
    yield [first, *others]
    os.sched_setaffinity(0, usual)


def test_a_thread_that_started_within_the_block_is_counted_too(cores: list[int]) -> None:
    def work() -> None:
        os.sched_setaffinity(0, {cores[1]})
        _hash_until(stop)

    shares: list[float] = []
    while len(shares) < 40:
        stop = threading.Event()
        worker = threading.Thread(target=work)
        before = thread_time()
        with Meter() as spent:
            worker.start()
            sleep(2 * SHORT_S)
        own = thread_time() - before
        assert worker.ident is not None
        true = clock_gettime(pthread_getcpuclockid(worker.ident))
        stop.set()
        worker.join()
        if true > SHORT_S:  # else it had no core
            shares.append((spent.cpu - own) / true)
    assert 0.7 < median(shares) < 1.3
