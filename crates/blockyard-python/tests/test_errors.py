"""Wrong input raises an exception that says what is wrong, and where."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from conftest import SHORT

import blockyard
from blockyard import _native


def ask(job: Any = SHORT, device: Any = "null", designs: Any = ("mq-none",), **more: Any) -> Any:
    """Asks a question of which one argument is wrong."""
    return blockyard.whatif(job, device, designs, **more)


@pytest.mark.parametrize(
    ("job", "file", "line", "words"),
    [
        ("[a]\nrw=raed\n", "<job>", 2, "<job>:2: `rw`: `raed` is not one of: read write"),
        ("[a]\nrw=read\n\nbs=x\n", "<job>", 4, "<job>:4: `bs`: `x` is not a number"),
        ("[a]\nrq=read\n", "<job>", 2, "<job>:2: unknown option `rq`; did you mean `rw`?"),
        ("[a]\0\nrw=read\n", "<job>", None, "not a job file: binary data (NUL or invalid UTF-8)"),
        ("\n\n", "<job>", None, "<job>: no jobs: a job file needs a section such as [job1]"),
        (" [a", "<job>", 1, "<job>:1: a section header is `[name]` and nothing else"),
        ("[a]\ninclude x\n", "<job>", 2, "cannot read the file"),
        ("[a]\n" + "x" * 2_000_000, "<job>", None, "the file is larger than 1048576 bytes"),
        ("no/such.fio", "no/such.fio", None, "no/such.fio: cannot read the file"),
        ("", "", None, "cannot read the file"),
        ("a\0b", "a\0b", None, "cannot read the file"),
        (Path("/"), "/", None, "/: cannot read the file"),
        (SHORT + "size=2t\n", "<job>", 8, "device smaller than the job"),
        (SHORT + "cpus_allowed=4000\n", None, None, "asks for CPU 4000"),
    ],
)
def test_a_wrong_job(job: Any, file: str | None, line: int | None, words: str) -> None:
    with pytest.raises(blockyard.JobError) as raised:
        ask(job)
    assert words in str(raised.value)
    assert (raised.value.file, raised.value.line) == (file, line)


@pytest.mark.parametrize(
    ("arguments", "file", "line", "words"),
    [
        ({"device": "nul"}, None, None, "unknown device `nul`: did you mean `null`?"),
        ({"device": ""}, None, None, "unknown device ``"),
        ({"device": "n\0ll"}, None, None, "unknown device `n\\0ll`"),
        ({"device": "./n\0ll"}, "./n\0ll", None, "NUL byte"),
        ({"device": Path("no/such.toml")}, "no/such.toml", None, "No such file"),
        ({"designs": ["mq-none", "cfq"]}, None, None, "unknown design `cfq`"),
        ({"designs": ["hsq"]}, None, None, "`hsq` only works on eMMC and SD devices; `null` is"),
        ({"faults": "no/such.toml"}, "no/such.toml", None, "No such file"),
        ({"device": "sd-hs", "disks": 2}, None, None, "disks: `sd-hs` is one disk"),
        ({"set": {"null.dept": 1}}, None, None, "setting `null.dept`: unknown key `dept`"),
        ({"set": {"null.depth": 0}}, None, None, "setting `null.depth`: `depth` is `0`, out of range"),
        ({"set": {"null.depth": 10**30}}, None, None, "setting `null.depth`: `depth` is `1000"),
        ({"set": {"null.depth": float("nan")}}, None, None, "`depth` is `NaN`, not a whole number"),
        ({"set": {"null.depth": "1\n[x]"}}, None, None, "not a whole number"),
        ({"set": {"": 1}}, None, None, "setting ``: a key is a path"),
        ({"set": {"card.access": "1us"}}, None, None, "the device has no `[card]`, but `[null]`"),
    ],
)
def test_a_wrong_profile(arguments: dict[str, Any], file: str | None, line: None, words: str) -> None:
    with pytest.raises(blockyard.ProfileError) as raised:
        ask(**arguments)
    assert words in str(raised.value)
    assert (raised.value.file, raised.value.line) == (file, line)


def test_the_line_of_a_wrong_file_is_told(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text('base = "null"\n[null]\ndepth = 0\n')
    for arguments in ({"device": file}, {"device": str(file), "set": {"null.depth": 4}}):
        with pytest.raises(blockyard.ProfileError) as raised:
            ask(**arguments)
        assert (raised.value.file, raised.value.line) == (str(file), 3)
    file.write_text("[[rule]]\nname = 'x'\nerror = 'oops'\n")
    with pytest.raises(blockyard.ProfileError) as raised:
        ask(faults=file)
    assert (raised.value.file, raised.value.line) == (str(file), 3)


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"job": 1}, TypeError, "job must be a str or a path, not int"),
        ({"job": None}, TypeError, "job must be"),
        ({"job": b"[a]\n"}, TypeError, "job must be a str or a path, not bytes"),
        ({"job": "[a]\n\ud800"}, UnicodeEncodeError, "surrogates"),
        ({"device": 1}, TypeError, "device must be"),
        ({"device": "\ud800"}, UnicodeEncodeError, "surrogates"),
        ({"designs": []}, ValueError, "designs must not be empty"),
        ({"designs": "mq-none"}, TypeError, "designs must be a list, not str"),
        ({"designs": None}, TypeError, "designs must be a list, not NoneType"),
        ({"designs": [1]}, TypeError, "a design must be"),
        ({"designs": {"mq-none": 1}}, TypeError, "designs must be a list, not dict"),
        ({"seed": -1}, ValueError, "seed must be from 0 to 18446744073709551615, not -1"),
        ({"seed": 2**64}, ValueError, "seed must be from 0"),
        ({"seed": 10**100}, ValueError, "seed must be from 0"),
        ({"seed": 1.0}, TypeError, "seed must be a whole number, not float"),
        ({"seed": True}, TypeError, "seed must be a whole number, not bool"),
        ({"seeds": 0}, ValueError, "seeds must be from 1 to 10000, not 0"),
        ({"seeds": "3"}, TypeError, "seeds must be a whole number, not str"),
        ({"readings": -1}, ValueError, "readings must be from 0 to 10000"),
        ({"disks": 0}, ValueError, "disks must be from 1 to 1024"),
        ({"verify": 1}, TypeError, "verify must be True or False, not int"),
        ({"faults": 1}, TypeError, "faults must be"),
        ({"set": []}, TypeError, "set must be a dict of keys and values, not list"),
        ({"set": {1: 2}}, TypeError, "a key of set must be a str, not int"),
        ({"set": {"null.depth": None}}, TypeError, "the value of null.depth must be a str"),
        ({"set": {"null.depth": [object()]}}, TypeError, "the value of null.depth"),
    ],
)
def test_a_wrong_argument(arguments: dict[str, Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind) as raised:
        ask(**arguments)
    assert words in str(raised.value)


def test_a_value_that_contains_itself() -> None:
    values: list[Any] = []
    values.append(values)
    with pytest.raises(TypeError, match="Circular"):
        ask(set={"null.depth": values})


def test_a_run_that_fails(tmp_path: Path) -> None:
    faults = tmp_path / "faults.toml"
    faults.write_text('[[rule]]\nname = "bad"\nerror = "medium"\n')
    with pytest.raises(blockyard.SimulationError, match="job `short`, at .* s: a read of .* failed"):
        ask(faults=faults)


def test_a_defect_is_an_exception() -> None:
    with pytest.raises(blockyard.SimulationError, match="please report it .*: tags were lost"):
        _native.defect("tags were lost")
    assert ask()["designs"][0]["ios"] == 16


def test_every_exception_is_an_error_and_survives_pickling() -> None:
    with pytest.raises(blockyard.Error) as raised:
        ask("[a]\nrw=raed\n")
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (type(copy), str(copy), copy.file, copy.line) == (
        blockyard.JobError,
        str(raised.value),
        "<job>",
        2,
    )
    for kind in (blockyard.JobError, blockyard.ProfileError, blockyard.SimulationError):
        assert issubclass(kind, blockyard.Error)


def test_names_of_devices_and_designs_can_be_used() -> None:
    assert {"null", "emmc-hs400"} <= set(blockyard.devices())
    assert {"mq-none", "hsq"} <= set(blockyard.designs())
    for device in blockyard.devices()[:3]:
        assert ask(device=device)["device"] == device
