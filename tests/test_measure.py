"""What is measured inside a process: the CPU time of all its threads, those included that are running right now."""

from __future__ import annotations

import threading
from hashlib import sha256
from statistics import median
from time import clock_gettime, pthread_getcpuclockid, sleep

from whorl.bench.measure import Meter

BLOCK = bytes(1 << 24)  # a thread that hashes it needs no interpreter lock for some ten milliseconds
SHORT_S = 0.001


def test_a_thread_that_is_running_is_counted_up_to_now() -> None:
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            sha256(BLOCK)

    worker = threading.Thread(target=work)
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
