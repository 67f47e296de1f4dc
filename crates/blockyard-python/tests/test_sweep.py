"""`sweep` in threads: grids, points, errors and tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import SHORT

import blockyard

LONGER = SHORT.replace("64k", "4m").replace("[short]", "[longer]")
GRID = {
    "job": [SHORT, LONGER],
    "device": ["sd-hs", "emmc-hs400"],
    "design": ["mmc-serial", "mmc-blkmq"],
    "seed": range(1, 4),
    "set": {"card.read.access": ["100us", "2ms"]},
}


def test_a_grid_has_every_combination_and_the_last_key_varies_fastest() -> None:
    table = blockyard.sweep(GRID)
    assert [row["point"] for row in table] == list(range(2 * 2 * 2 * 3 * 2))
    keys = ("job", "device", "design", "seed", "card.read.access")
    found = [tuple(row[key] for key in keys) for row in table]
    assert found[0] == ("short", "sd-hs", "mmc-serial", 1, "100us")
    assert found[1] == ("short", "sd-hs", "mmc-serial", 1, "2ms")
    assert found[2] == ("short", "sd-hs", "mmc-serial", 2, "100us")
    assert found[-1] == ("longer", "emmc-hs400", "mmc-blkmq", 3, "2ms")
    assert len(set(found)) == len(found)
    assert {row["job_file"] for row in table} == {"<job>"}


def test_every_point_has_the_figures_of_whatif() -> None:
    for row in blockyard.sweep(GRID):
        answer = blockyard.whatif(
            SHORT if row["job"] == "short" else LONGER,
            row["device"],
            [row["design"]],
            seed=row["seed"],
            set={"card.read.access": row["card.read.access"]},
        )
        [expected] = answer.rows
        del expected["ratio"]
        assert row | expected == row
        assert expected["ios"] == (16 if row["job"] == "short" else 1024)


def test_the_number_of_threads_changes_nothing() -> None:
    table = blockyard.sweep(GRID)
    for threads in (1, 2, 7):
        assert blockyard.sweep(GRID, threads=threads) == table


def test_points_can_be_a_list_with_different_keys() -> None:
    point = {"job": SHORT, "device": "null", "design": "mq-none"}
    slow = {"null.completion": "timer", "null.completion-time": "10ms"}
    table = blockyard.sweep([point, point | {"seed": 2**64 - 1, "set": slow}])
    assert [row["seed"] for row in table] == [1, 2**64 - 1]
    assert [row["null.completion-time"] for row in table] == [None, "10ms"]
    assert table[0]["lat_min_ns"] < 10_000_000 <= table[1]["lat_min_ns"]
    assert table.columns == list(table[1])


def test_a_value_of_a_design_can_be_set() -> None:
    # Reads in sequence merge in the scheduler, or each is a command of 10 ms: 100 in a second.
    job = SHORT.replace("randread", "read").replace("iodepth=4", "iodepth=16")
    grid = {"job": job, "device": "null", "design": "mq-deadline"}
    slow = {"null.completion": "timer", "null.completion-time": "10ms", "null.depth": 1}
    values = [slow | {"queue.sched-depth": 64, "queue.nomerges": nomerges} for nomerges in (0, 2)]
    table = blockyard.sweep(grid | {"set": values})
    assert [row["queue.nomerges"] for row in table] == [0, 2]
    assert 90 < table[1]["iops"] <= 100 < table[0]["iops"] / 2
    with pytest.raises(blockyard.ProfileError, match="goes only with"):
        blockyard.sweep(grid | {"set": {"queue.kyber.read-latency": ["1ms"]}})


def test_a_single_value_needs_no_list() -> None:
    grid = {"job": SHORT, "device": "null", "design": ["mq-none", "mq-deadline"], "seed": 3}
    table = blockyard.sweep(grid | {"set": [{}, {"null.depth": 1}]})
    assert [(row["design"], row["null.depth"]) for row in table] == [
        ("mq-none", None),
        ("mq-none", 1),
        ("mq-deadline", None),
        ("mq-deadline", 1),
    ]


def test_files_are_read_before_the_first_run(tmp_path: Path) -> None:
    job, device, design = (tmp_path / name for name in ("a.fio", "b.toml", "c.toml"))
    job.write_text(SHORT)
    device.write_text('base = "null"\n')
    design.write_text('base = "mq-none"\n')
    [row] = blockyard.sweep({"job": job, "device": device, "design": [design]})
    assert (row["job_file"], row["device"], row["design"]) == (str(job), str(device), str(design))


def test_one_call_handles_ten_thousand_points() -> None:
    grid = {
        "job": SHORT,
        "device": "null",
        "design": ["mq-none", "mq-deadline"],
        "seed": range(50),
        "set": {"null.completion": "timer", "null.completion-time": [f"{us}us" for us in range(100)]},
    }
    table = blockyard.sweep(grid)
    assert [row["point"] for row in table] == list(range(10_000))
    assert {row["ios"] for row in table} == {16}
    # Each read takes at least the time of its point.
    assert all(row["lat_min_ns"] >= 1000 * int(row["null.completion-time"][:-2]) for row in table)
    assert table.to_arrow().num_rows == len(table.to_pandas()) == 10_000


# mmc-blkmq is for cards only.
MIXED: dict[str, Any] = {
    "job": SHORT,
    "device": ["sd-hs", "null", "emmc-hs400"],
    "design": "mmc-blkmq",
    "set": [{}],
}


def test_a_point_that_cannot_run_raises_its_exception() -> None:
    with pytest.raises(blockyard.ProfileError, match="only works on eMMC and SD devices") as raised:
        blockyard.sweep(MIXED)
    if hasattr(raised.value, "__notes__"):
        assert "'point': 1" in raised.value.__notes__[0]


def test_a_point_that_cannot_run_can_be_a_row() -> None:
    table = blockyard.sweep(MIXED, errors="rows")
    assert [row["iops"] is None for row in table] == [False, True, False]
    assert [row["error"] is None for row in table] == [True, False, True]
    assert "`null` is a null device" in table[1]["error"]
    assert len({tuple(row) for row in table}) == 1
    assert table.to_pandas()["iops"].isna().tolist() == [False, True, False]
    assert table.to_arrow().column("iops").null_count == 1
    alone = blockyard.sweep(MIXED | {"device": "null"}, errors="rows")
    assert [row["point"] for row in alone] == [0]


def test_the_first_of_several_exceptions_is_raised_whatever_the_threads() -> None:
    point = {"job": SHORT, "device": "null", "design": "mq-none"}
    grid = [point] * 20 + [point | {"design": "hsq"}, point | {"design": "btt"}] * 5
    for threads in (1, 2, 8):
        with pytest.raises(blockyard.ProfileError, match="`hsq` only works"):
            blockyard.sweep(grid, threads=threads)


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"job": "[a]\nrw=x\n"}, blockyard.JobError, "<job>:2: `rw`"),
        ({"device": ["null", "nul"]}, blockyard.ProfileError, "unknown device `nul`"),
        ({"design": "cfq"}, blockyard.ProfileError, "unknown design `cfq`"),
        ({"set": {"null.depth": [1, 0]}}, blockyard.ProfileError, "setting `null.depth`"),
        ({"set": {"null.depth": []}}, ValueError, "null.depth must not be empty"),
        ({"set": 1}, TypeError, "set must be a dict"),
        ({"seed": []}, ValueError, "seed must not be empty"),
        ({"seed": [-1]}, ValueError, "seed must be from 0"),
        ({"seed": "1"}, TypeError, "seed must be a whole number, not str"),
        ({"device": []}, ValueError, "device must not be empty"),
        ({"device": [None]}, TypeError, "device must be a str or a path, not NoneType"),
        ({"designs": ["mq-none"]}, ValueError, "unknown key 'designs' (one of job, device, design"),
    ],
)
def test_a_wrong_grid(change: dict[str, Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind) as raised:
        blockyard.sweep({"job": SHORT, "device": "null", "design": "mq-none"} | change)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("grid", "kind", "words"),
    [
        ({}, ValueError, "point 0 has no job"),
        ([], ValueError, "grid must not be empty"),
        (None, TypeError, "grid must be a list"),
        ("job", TypeError, "grid must be a list"),
        ([1], TypeError, "a point must be a dict, not int"),
        ([{"job": SHORT, "device": "null"}], ValueError, "point 0 has no design"),
    ],
)
def test_wrong_points(grid: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        blockyard.sweep(grid)


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"client": 1}, TypeError, "client must be a distributed.Client, not int"),
        ({"errors": "ignore"}, ValueError, 'errors must be "raise" or "rows"'),
        ({"threads": 0}, ValueError, "threads must be from 1 to 1024"),
        ({"chunk": 0}, ValueError, "chunk must be from 1"),
    ],
)
def test_a_wrong_argument(arguments: dict[str, Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        blockyard.sweep({"job": SHORT, "device": "null", "design": "mq-none"}, **arguments)


def test_a_note_about_a_job_is_a_warning_once() -> None:
    with pytest.warns(blockyard.JobWarning, match="`zero_buffers` has no effect") as told:
        blockyard.sweep({"job": SHORT + "zero_buffers\n", "device": "null", "design": ["mq-none"] * 3})
    assert [warning.filename for warning in told] == [__file__]


def test_a_column_of_several_types_is_text_in_arrow() -> None:
    grid = {"job": SHORT, "device": "sd-hs", "design": "mmc-serial"}
    curves = ["[[0, 90], [100, 110]]", [[0, 100], [100, 100]]]
    arrow = blockyard.sweep(grid | {"set": {"card.read.spread": curves}}).to_arrow()
    assert arrow.column("card.read.spread").to_pylist() == [curves[0], "[[0, 100], [100, 100]]"]
    assert str(arrow.column("seed").type) == "uint64"
