"""A disk for each test that asks for one."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PROGRAM = os.environ.get("BLOCKYARD", "blockyard")
# A socket path has room for 107 bytes, so it is relative to the folder of the test.
SOCKET = "disk.sock"


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """Returns a function that serves a disk with options of `blockyard serve` and returns its URI.

    The server ends with the test. If its last flush fails, or it dies, so does the test.
    """
    program = Path(PROGRAM).absolute() if "/" in PROGRAM else PROGRAM
    monkeypatch.chdir(tmp_path)
    servers = []

    def start(*options: str) -> str:
        command = [program, "serve", *options, "--nbd", f"unix:{SOCKET}"]
        server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        servers.append(server)
        log = []
        for line in server.stderr:
            log.append(line)
            if "serving at" in line:
                return f"nbd+unix:///?socket={SOCKET}"
        raise AssertionError(f"the server ended before it served: {''.join(log)}")

    yield start
    for server in servers:
        server.terminate()
        _, log = server.communicate(timeout=60)
        assert server.returncode == 0, log
