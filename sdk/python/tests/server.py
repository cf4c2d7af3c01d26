"""A real server for the tests: the binary that OUTLAST_BIN names, on a free port and a file of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

from outlast import Client

BINARY = os.environ.get("OUTLAST_BIN")
TESTS = Path(__file__).parent
#: The same tasks, done by each SDK.
PROGRAMS = {
    "python": [sys.executable, str(TESTS / "program.py")],
    "node": ["node", str(TESTS.parent.parent / "typescript" / "tests" / "program.js")],
}


class Server:
    def __init__(self, directory: str, config: str = "") -> None:
        self._directory = directory
        Path(directory, "outlast.toml").write_text(config)
        self._listen = "127.0.0.1:0"
        self.start()

    def start(self) -> None:
        """Also after it was killed: at the same address, with what it had."""
        assert BINARY is not None
        database = f"sqlite:{self._directory}/outlast.db"
        # A variable of whoever runs the tests must not say where the test's server is.
        clean = {name: value for name, value in os.environ.items() if not name.startswith("OUTLAST_")}
        self._process = subprocess.Popen(
            [BINARY, "serve", "--listen", self._listen, "--database", database],
            cwd=self._directory, env=clean, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self._process.stderr is not None
        lines: list[str] = []
        for line in self._process.stderr:
            lines.append(line)
            said = json.loads(line) if line.startswith("{") else {}
            if said.get("message") == "listening":
                self.url = said["address"]
                self._listen = self.url.removeprefix("http://")
                break
        else:
            raise AssertionError("the server did not start:\n" + "".join(lines))
        # Somebody must read what it logs, or it waits for that.
        self._log = threading.Thread(target=self._process.stderr.read, daemon=True)
        self._log.start()

    def kill(self, number: int = signal.SIGKILL) -> None:
        self._process.send_signal(number)
        self._process.wait()
        self._log.join()
        assert self._process.stderr is not None
        self._process.stderr.close()


@unittest.skipUnless(BINARY, "OUTLAST_BIN names no server")
class WithServer(unittest.TestCase):
    """A test with a server, a client of it, and workers that end with the test."""

    config = ""

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.server = Server(directory.name, self.config)
        self.addCleanup(self.server.kill)
        self.client = Client(self.server.url)
        self.addCleanup(self.client.close)

    def worker(self, sdk: str = "python", **options: Any) -> subprocess.Popen[str]:
        """A worker in a process of its own, which does the tasks of `program`."""
        env = {**os.environ, "OUTLAST_URL": self.server.url, "PYTHONPATH": str(TESTS.parent)}
        process = subprocess.Popen(
            [*PROGRAMS[sdk], json.dumps({"lease": 3.0, "grace": 10.0, **options})],
            env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

        def end() -> None:
            process.kill()
            process.communicate()

        self.addCleanup(end)
        return process

    def ended(self, process: subprocess.Popen[str], seconds: float = 20.0) -> None:
        """It ends by itself, and well."""
        _, errors = process.communicate(timeout=seconds)
        self.assertEqual(process.returncode, 0, errors)

    def start(self, task: str, run: str = "r", **args: Any) -> None:
        """A run of one task, whose attempts are written to a file."""
        self.client.put_workflow(f"{task}.wf", f'workflow {task}(args) {{ return await Task.run("{task}", args) }}')
        self.client.start(task, {"log": str(self.directory / "log"), **args}, id=run)

    def log(self) -> list[str]:
        """What handlers wrote, in order."""
        path = self.directory / "log"
        return path.read_text().splitlines() if path.exists() else []

    def events(self, run: str) -> list[str]:
        found = self.client.transport.call("GET", f"/api/v1/runs/{run}/events")[1]["events"]
        return [event["kind"] for event in found]


def until(what: Callable[[], Any], seconds: float = 20.0) -> Any:
    began = time.monotonic()
    while not (found := what()):
        if time.monotonic() - began > seconds:
            raise AssertionError("it did not happen")
        time.sleep(0.02)
    return found


SIGTERM = signal.SIGTERM
