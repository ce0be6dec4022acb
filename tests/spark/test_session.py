"""Spark's Java process does not outlive the Python process that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.processes import await_, below, command_of, end

pytestmark = pytest.mark.xdist_group("spark")  # one process, and one session, for all

# A child that is forked keeps open what tells Java that its parent has gone.
STARTS = """
import os, time, whorl
from tests.spark.conftest import SETTINGS
spark = whorl.spark_session("local[1]", SETTINGS)
print(spark._jvm.java.lang.ProcessHandle.current().pid(), flush=True)
os.fork()
time.sleep(600)
"""


def test_java_goes_when_python_is_killed() -> None:
    root = Path(__file__).parents[2]
    process = subprocess.Popen([sys.executable, "-c", STARTS], cwd=root, text=True, stdout=subprocess.PIPE)
    assert process.stdout is not None
    left: list[int] = []
    try:
        java = int(process.stdout.readline())
        assert "java" in command_of(java)
        await_(lambda: any(each != java and "whorl" in command_of(each) for each in below(process.pid)), "the child")
        left = below(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        await_(lambda: not command_of(java), "the end of Java")
        assert any("whorl" in command_of(each) for each in left), "the child is still there"
    finally:
        end([*left, *below(process.pid), process.pid])
        process.communicate()
