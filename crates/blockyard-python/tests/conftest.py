"""What the tests share: the program to compare with, jobs, and a cluster."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster

ROOT = Path(__file__).parents[3]
PROGRAM = Path(os.environ.get("BLOCKYARD_PROGRAM", ROOT / "target/release/blockyard"))

# 64 KiB in reads of 4 KiB: a run of less than a millisecond.
SHORT = "[short]\nrw=randread\nbs=4k\nsize=64k\ndirect=1\nioengine=libaio\niodepth=4\n"
# A run that takes long enough to be interrupted.
LASTING = "[lasting]\nrw=read\nbs=4k\nsize=1m\ndirect=1\ntime_based\nruntime=20s\n"


def asked(*words: str) -> dict[str, Any]:
    """Returns the answer of the command line as data."""
    assert PROGRAM.exists(), f"{PROGRAM}: build it first, or name it with BLOCKYARD_PROGRAM"
    command = [str(PROGRAM), "whatif", *words, "--output-format=json"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.fixture(scope="session")
def client() -> Iterator[Client]:
    """A client of two worker processes, of one thread each."""
    with (
        LocalCluster(processes=True, n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client
