"""What tests can do with a disk of their own."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

Serve = Callable[..., str]


def copy(source: str | Path, target: str | Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Copies a disk or a file; it stands for the program that is tested."""
    return subprocess.run(["nbdcopy", *options, source, target], capture_output=True, text=True, check=False)


def test_a_copy_comes_back_as_it_was(serve: Serve, tmp_path: Path) -> None:
    image, back = tmp_path / "image", tmp_path / "back"
    image.write_bytes(os.urandom(8 << 20))
    uri = serve("memory:8m")
    assert copy(image, uri).returncode == 0
    assert copy(uri, back).returncode == 0
    assert back.read_bytes() == image.read_bytes()


def test_a_bad_sector_is_no_silent_loss(serve: Serve, tmp_path: Path) -> None:
    rules = tmp_path / "faults.toml"
    rules.write_text('[[rule]]\nname = "bad sector"\nop = "read"\nsectors = "100..101"\nerror = "medium"\n')
    image = tmp_path / "image"
    image.write_bytes(os.urandom(8 << 20))
    uri = serve("memory:8m", "--fault", str(rules))
    assert copy(image, uri).returncode == 0  # a hole would not be read
    failed = copy(uri, tmp_path / "back")
    assert failed.returncode != 0
    assert "Input/output error" in failed.stderr


def test_a_slow_disk_is_slow(serve: Serve, tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_bytes(os.urandom(8 << 20))
    uri = serve("memory:8m", "--delay", "50ms")
    begun = time.monotonic()
    # Eight writes of 1 MiB, one after the other.
    options = ["--requests=1", "--connections=1", "--request-size=1048576"]
    assert copy(image, uri, *options).returncode == 0
    assert time.monotonic() - begun >= 8 * 0.05
