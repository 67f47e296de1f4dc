"""`sweep` on a Dask client: the same table, also when a worker dies."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import pytest
from conftest import SHORT
from distributed import Client
from test_sweep import GRID, MIXED

import blockyard

# Some 100,000 I/Os: long enough to be killed at.
LONG = SHORT.replace("64k", "400m")


def test_a_client_returns_the_table_of_threads(client: Client) -> None:
    table = blockyard.sweep(GRID)
    for chunk in (None, 1, 7, 1000):
        assert blockyard.sweep(GRID, client, chunk=chunk) == table
    assert isinstance(blockyard.sweep(GRID, client), blockyard.Table)


def test_both_workers_work(client: Client) -> None:
    blockyard.sweep(GRID | {"seed": range(100)}, client)
    ran = client.run(lambda dask_worker: dask_worker.state.executed_count)
    assert len(ran) == 2
    assert all(count > 0 for count in ran.values()), ran


def test_errors_are_those_of_threads(client: Client) -> None:
    with pytest.raises(blockyard.ProfileError) as raised:
        blockyard.sweep(MIXED, client, chunk=1)
    with pytest.raises(blockyard.ProfileError) as expected:
        blockyard.sweep(MIXED)
    assert str(raised.value) == str(expected.value)
    assert blockyard.sweep(MIXED, client, errors="rows") == blockyard.sweep(MIXED, errors="rows")


def test_a_chunk_whose_worker_is_killed_runs_again(client: Client) -> None:
    grid = {"job": LONG, "device": "null", "design": ["mq-none", "mq-deadline"], "seed": range(8)}
    before = client.run(os.getpid)
    killed: list[int] = []
    done = threading.Event()

    def kill_a_busy_worker() -> None:
        while not killed and not done.wait(0.01):
            for worker, tasks in client.call_stack().items():
                if tasks and worker in before:
                    killed.append(before[worker])
                    os.kill(before[worker], signal.SIGKILL)
                    return

    killer = threading.Thread(target=kill_a_busy_worker)
    killer.start()
    table = blockyard.sweep(grid, client, chunk=1)
    done.set()
    killer.join()
    client.wait_for_workers(2)
    assert len(killed) == 1
    assert killed[0] not in client.run(os.getpid).values()
    assert table == blockyard.sweep(grid)


def test_a_sweep_that_is_interrupted_leaves_no_chunks(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("distributed.Future.result", interrupt)
    with pytest.raises(KeyboardInterrupt):
        blockyard.sweep(GRID | {"seed": range(50)}, client, chunk=1)
    monkeypatch.undo()
    assert not client.futures


def test_a_chunk_that_fails_runs_again(client: Client) -> None:
    grid = GRID | {"seed": [77]}

    def fail_once() -> None:
        from blockyard import sweeping

        run = sweeping.run

        def fail(of: list[Any], *more: Any) -> Any:
            # Chunks of other tests, cancelled while they ran, come by too.
            if of[0].seed != 77:
                return run(of, *more)
            sweeping.run = run
            raise OSError("once")

        sweeping.run = fail

    client.run(fail_once)
    assert blockyard.sweep(grid, client, chunk=1) == blockyard.sweep(grid)
