"""Processes of Spark, found by their parents and command lines; and a small cluster of its own on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.golden_cases import HERE
from whorl.hosts.spark.session import find_java

EXECUTOR = "CoarseGrainedExecutorBackend"
WAIT_S = 120.0
# A small heap, and one compiler, which starts sooner.
_DAEMON = {
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_DAEMON_MEMORY": "256m",
    "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dspark.master.rest.enabled=false",
}


def await_(condition: Callable[[], bool], what: str) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.05)


def parent_of(process: int) -> int:
    """Return the parent of a process; 0 if the process has ended."""
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def command_of(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def below(ancestor: int) -> list[int]:
    """Return all processes that a process started, and those that they started."""
    everybody = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    children: dict[int, list[int]] = {}
    for each in everybody:
        children.setdefault(parent_of(each), []).append(each)
    found, frontier = list[int](), [ancestor]
    while frontier:
        own = children.get(frontier.pop(), [])
        found += own
        frontier += own
    return found


def executors_of(ancestor: int) -> list[int]:
    """Return the executors that a process started, by their command lines."""
    return sorted(each for each in below(ancestor) if EXECUTOR in command_of(each))


def executor_above(process: int) -> int:
    """Return the executor that a worker belongs to."""
    while process and EXECUTOR not in command_of(process):
        process = parent_of(process)
    assert process, "no executor above"
    return process


@contextmanager
def driver(module: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run a module of the tests as a driver; whatever it leaves behind is ended by its id."""
    command = [sys.executable, "-m", module, *arguments]
    process = subprocess.Popen(command, cwd=HERE.parent, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        end([*below(process.pid), process.pid])
        process.communicate()


def finish(process: subprocess.Popen[str]) -> str:
    """Wait until a driver has ended well; return what it said."""
    said, _nothing = process.communicate(timeout=300)
    assert process.returncode == 0, said[-3000:]
    return said


def end(processes: list[int]) -> None:
    for each in processes:
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


@contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[str]:
    """Start a master and workers of Spark's own cluster on 127.0.0.1; yield the master's address."""
    started: list[subprocess.Popen[bytes]] = []
    try:
        log = _start(started, folder / "master", "master.Master", "--port", "0")
        await_(lambda: "Starting Spark master at spark://" in log.read_text(), "the master")
        address = "spark://" + log.read_text().partition("Starting Spark master at spark://")[2].split()[0]
        for number in range(workers):
            place = folder / f"worker-{number}"
            _start(started, place, "worker.Worker", "--cores", "1", "--memory", "1g", "-d", str(place), address)
        await_(lambda: log.read_text().count("Registering worker") == workers, "the workers")
        yield address
    finally:
        left = [each for process in started for each in below(process.pid)]
        for process in started:
            process.terminate()
        for process in started:
            process.wait(60)
        end(left)


def _start(started: list[subprocess.Popen[bytes]], folder: Path, name: str, *arguments: str) -> Path:
    import pyspark

    find_java()
    folder.mkdir(parents=True)
    home = Path(pyspark.__file__).parent
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1"]
    environment = {**os.environ, **_DAEMON, "SPARK_HOME": str(home)}
    log = folder / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*command, "--webui-port", "0", *arguments], env=environment, cwd=folder, stdout=file, stderr=file
        )
    started.append(process)
    return log
