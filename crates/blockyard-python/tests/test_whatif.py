"""`whatif`: the same digits as the command line, and what can be done with them."""

from __future__ import annotations

import _thread
import pickle
import re
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import LASTING, ROOT, SHORT, asked

import blockyard

READS = SHORT.replace("size=64k", "size=1g\nruntime=1\ntime_based")


@pytest.fixture(autouse=True)
def at_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs a test at the root of the repository, as the command line runs there."""
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize(
    ("job", "device", "designs", "arguments", "words"),
    [
        ("examples/mixed.fio", "qla2xxx", ["mq-none", "mq-deadline"], {}, []),
        (
            "examples/fsync.fio",
            "emmc-hs400",
            ["mmc-blkmq", "hsq", "cqe"],
            {"seed": 2**64 - 1, "verify": True},
            ["--verify"],
        ),
        ("examples/pmem.fio", "pmem-dram", ["pmem-raw", "btt"], {}, []),
        (
            "crates/blockyard-python/tests/short.fio",
            "sd-hs",
            ["mmc-serial", "mmc-blkmq"],
            {"seed": 7, "seeds": 3, "readings": 4, "set": {"card.read.access": "900us"}},
            ["--seeds=3", "--readings=4", "--set=card.read.access=900us"],
        ),
        (
            "crates/blockyard-python/tests/short.fio",
            "sd-hs",
            ["mq-deadline", "bfq"],
            {
                "seeds": 2,
                "readings": 2,
                "set": {"queue.nomerges": 2},
                "sweep": {"card.read.access": ["300us", "900us"]},
            },
            ["--seeds=2", "--readings=2", "--set=queue.nomerges=2", "--sweep=card.read.access=300us,900us"],
        ),
        (
            "examples/scsi-randread.fio",
            "srp",
            ["mq-none"],
            {"disks": 2, "faults": Path("examples/faults.toml"), "readings": 0},
            ["--disks=2", "--faults=examples/faults.toml", "--readings=0"],
        ),
        (
            "crates/blockyard-python/tests/log.fio",
            "sd-a2",
            ["mmc-blkmq"],
            {"filesystem": "ext4"},
            ["--filesystem=ext4"],
        ),
    ],
)
def test_the_digits_are_those_of_the_command_line(
    job: str, device: str, designs: list[str], arguments: dict[str, Any], words: list[str]
) -> None:
    seed = f"--seed={arguments.get('seed', 1)}"
    expected = asked(job, f"--device={device}", f"--design={','.join(designs)}", seed, *words)
    assert blockyard.whatif(Path(job), device, designs, **arguments) == expected
    assert expected["designs"][0]["ios"] > 0


def test_a_job_is_a_path_or_text() -> None:
    path = Path("crates/blockyard-python/tests/short.fio")
    by_path = blockyard.whatif(path, "null", ["mq-none"])
    assert by_path["job"] == str(path)
    assert blockyard.whatif(str(path), "null", ["mq-none"]) == by_path
    by_text = blockyard.whatif(path.read_text(), "null", ["mq-none"])
    assert by_text == by_path | {"job": "<job>"}


def test_files_of_devices_and_designs_are_read(tmp_path: Path) -> None:
    device, design = tmp_path / "slow.toml", tmp_path / "own.toml"
    device.write_text('base = "null"\n[null]\ncompletion = "timer"\ncompletion-time = "10ms"\n')
    design.write_text('base = "mq-none"\n')
    answer = blockyard.whatif(READS.replace("iodepth=4", "iodepth=1"), device, [design, "mq-none"])
    # A read of 10 ms leaves room for 100 in a second, and some time for processors.
    assert 98 <= answer["designs"][0]["iops"] <= 100
    assert [of["name"] for of in answer["designs"]] == [str(design), "mq-none"]
    assert answer["designs"][0]["ratio"] == answer["designs"][1]["ratio"] == 1.0


def test_values_are_set() -> None:
    def latency(**values: Any) -> Any:
        key = {"null.completion": "timer", "null.completion-time": "5ms"} | values
        return blockyard.whatif(READS, "null", ["mq-none"], set=key)["designs"][0]["lat_ns"]["min"]

    assert 5_000_000 <= latency() < 6_000_000
    assert 2_000_000 <= latency(**{"null.completion-time": "2ms"}) < 3_000_000
    # With one tag for four reads, each waits for the three before it.
    one = {"null.depth": 1, "null.submit-queues": 1, "null.shared-tags": True}
    answer = blockyard.whatif(
        READS, "null", ["mq-none"], set={"null.completion": "timer", "null.completion-time": "5ms"} | one
    )
    assert 190 <= answer["designs"][0]["iops"] <= 200
    curve = {"card.read.spread": [[0, 100], [100, 100]], "card.access": "2ms"}
    fixed = blockyard.whatif(READS, "sd-hs", ["mmc-serial"], set=curve)
    assert fixed["designs"][0]["lat_ns"]["p50"] >= 4 * 2_000_000


def test_rows_are_jobs_and_directions() -> None:
    job = SHORT + "[both]\nrw=rw\nbs=4k\nsize=1m\n[none]\nrw=read\nbs=4k\nsize=64k\nstartdelay=1\n"
    answer = blockyard.whatif(job.replace("[short]", "[global]\ndirect=1\n[short]"), "null", ["mq-none", "mq-deadline"])
    found = [(row["design"], row["job"], row["direction"]) for row in answer.rows]
    of_one = [("short", "read"), ("both", "read"), ("both", "write"), ("none", "read")]
    assert found == [(design, *of) for design in ("mq-none", "mq-deadline") for of in of_one]
    for number, design in enumerate(answer["designs"]):
        rows = answer.rows[4 * number : 4 * number + 4]
        assert sum(row["bytes"] for row in rows) == design["bytes"]
        jobs = {job["name"]: job for job in design["jobs"]}
        for row in rows:
            job = jobs[row["job"]]
            of = job[row["direction"]]
            assert [row[key] for key in ("group", "errors")] == [job["group"], job["errors"]]
            for key in ("ios", "bytes", "iops", "bytes_per_s"):
                assert row[key] == of[key]
            for key in ("min", "mean", "p50", "p99", "p99.9", "max"):
                assert row[f"lat_{key}_ns"] == of["lat_ns"][key]
            for key in ("cpu_percent", "device_busy_percent", "ios_per_command", "wakeups_per_io"):
                assert row[key] == design[key]
            assert row["ratio"] == design["ratio"]
            assert [row["run_iops"], row["run_bytes_per_s"]] == [design["iops"], design["bytes_per_s"]]


def test_a_job_that_ends_in_its_ramp_is_reported_whole() -> None:
    [whole] = blockyard.whatif(SHORT, "null", ["mq-none"]).rows
    [row] = blockyard.whatif(SHORT + "ramp_time=1s\n", "null", ["mq-none"]).rows
    assert row["ios"] > 0
    assert (row["direction"], row["ios"], row["bytes"]) == ("read", whole["ios"], whole["bytes"])


def test_a_job_that_syncs_has_a_row_of_its_syncs() -> None:
    job = "[log]\ndirect=1\nrw=write\nbs=4k\nsize=64k\nfdatasync=1\n"
    rows = blockyard.whatif(job, "hdd-7200", ["mq-none"]).rows
    assert [row["direction"] for row in rows] == ["sync", "write"]
    # No sync follows the last of the 16 writes, and each waits for the platters: half a turn is
    # 4.17 ms.
    assert (rows[0]["ios"], rows[0]["bytes"]) == (15, 0)
    assert rows[0]["lat_p50_ns"] > 4_160_000
    assert rows[1]["lat_p50_ns"] < 1_000_000


def test_a_file_system_is_assumed_if_it_is_named(tmp_path: Path) -> None:
    job = "[log]\nrw=write\nbs=2300\nsize=23k\nfdatasync=1\nfallocate=none\n"
    own = tmp_path / "slow.toml"
    own.write_text('base = "ext4"\n[filesystem]\ncommit-interval = "30s"\n')
    answers = [blockyard.whatif(job, "sd-a2", ["mmc-blkmq"], filesystem=of) for of in ("ext4", own)]
    seconds = [answer["file_system"]["commit_interval_ns"] / 1e9 for answer in answers]
    assert seconds == [5, 30]
    assert answers[0]["file_system"]["journal"] == "ordered"
    # A growing log waits for its journal: each sync commits.
    [log] = answers[0]["designs"][0]["jobs"]
    assert log["calls_ns"]["journal"] > 0
    with pytest.warns(blockyard.JobWarning, match="no file system and no journal"):
        raw = blockyard.whatif(job.replace("fallocate=none\n", ""), "sd-a2", ["mmc-blkmq"], filesystem="none")
    assert "file_system" not in raw
    assert raw["designs"][0]["jobs"][0]["calls_ns"]["journal"] == 0
    with pytest.raises(blockyard.ProfileError, match="unknown file system `ext3`"):
        blockyard.whatif(job, "sd-a2", ["mmc-blkmq"], filesystem="ext3")


def test_tables_of_pandas_and_arrow_have_the_rows() -> None:
    answer = blockyard.whatif(SHORT, "null", ["mq-none", "mq-deadline"])
    frame, arrow = answer.to_pandas(), answer.to_arrow()
    assert frame.to_dict("records") == list(answer.rows) == arrow.to_pylist()
    assert list(frame.columns) == arrow.column_names == answer.rows.columns


@pytest.mark.parametrize(("library", "method"), [("pandas", "to_pandas"), ("pyarrow", "to_arrow")])
def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch, library: str, method: str) -> None:
    answer = blockyard.whatif(SHORT, "null", ["mq-none"])
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=f"pip install {library}"):
        getattr(answer, method)()


def test_an_answer_survives_pickling() -> None:
    answer = blockyard.whatif(SHORT, "null", ["mq-none"])
    copy = pickle.loads(pickle.dumps(answer))
    assert (copy, copy.rows) == (answer, answer.rows)
    assert isinstance(copy, blockyard.Answer)


def test_a_note_about_the_job_is_a_warning_at_the_call() -> None:
    with pytest.warns(blockyard.JobWarning, match="<job>:8: `zero_buffers` has no effect") as told:
        blockyard.whatif(SHORT + "zero_buffers", "null", ["mq-none"])
    assert [warning.filename for warning in told] == [__file__]


@pytest.mark.parametrize(
    "run",
    [
        lambda: blockyard.whatif(LASTING, "null", ["mq-none", "mq-deadline"]),
        lambda: blockyard.sweep([{"job": LASTING, "device": "null", "design": "mq-none"}] * 5),
    ],
)
def test_ctrl_c_ends_a_run_while_other_threads_go_on(run: Any) -> None:
    # A job that a shell has put into the background ignores the signal, and Python with it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # This thread can interrupt the main one only if that has released the interpreter lock.
    threading.Timer(0.2, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        run()


def test_the_example_of_the_readme_runs() -> None:
    text = (ROOT / "crates/blockyard-python/README.md").read_text()
    [example] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {}
    exec(example, names)
    assert len(names["table"]) == 2 * 2 * 8 * 3
