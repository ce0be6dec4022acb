"""A Mosquitto of one's own, on this machine, on a free port."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

MOSQUITTO = shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
_LIBC = ctypes.CDLL(None)
WHY_NOT = "mosquitto is not installed: on Debian, apt-get install mosquitto"


def _end_with_the_tests() -> None:
    """Ask the system to end the broker when whoever started it ends, killed or not."""
    _LIBC.prctl(1, signal.SIGTERM)


class Broker:
    """A broker that keeps sessions in a folder, so that it can be started again."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self._config = folder / "mosquitto.conf"
        user = "user root\n" if os.geteuid() == 0 else ""
        self._config.write_text(
            f"listener {self.port} 127.0.0.1\nallow_anonymous true\n{user}"
            f"persistence true\npersistence_location {folder}/\nautosave_interval 1\n"
        )
        self.start()

    def start(self) -> None:
        assert MOSQUITTO is not None
        self._process = subprocess.Popen(
            [MOSQUITTO, "-c", str(self._config)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=_end_with_the_tests if sys.platform == "linux" else None,  # noqa: PLW1509 - one call, no lock
        )
        until = time.monotonic() + 20
        while time.monotonic() < until:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        message = "mosquitto does not answer"
        raise TimeoutError(message)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(20)

    def publish(self, topic: str, payloads: Sequence[str | bytes], qos: int = 1) -> None:
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion

        client = Client(CallbackAPIVersion.VERSION2, "publisher")
        client.connect("127.0.0.1", self.port)
        client.loop_start()
        for payload in payloads:
            client.publish(topic, payload, qos).wait_for_publish(20)
        client.disconnect()
        client.loop_stop()
