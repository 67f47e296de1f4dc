"""The native module. Its functions expect checked arguments: use the package."""

JobText = tuple[str, bytes]
Value = tuple[str, str]
DeviceText = tuple[str, str, list[Value]]
DesignText = tuple[str, str, list[Value]]
Point = tuple[int, int, int, int]

def whatif(
    job: JobText,
    device: str,
    designs: list[str],
    seed: int,
    seeds: int | None,
    readings: int | None,
    set: list[Value],
    sweep: list[tuple[str, list[str]]],
    disks: int | None,
    faults: str | None,
    filesystem: str | None,
    verify: bool,
) -> tuple[str, str, list[str]]: ...
def check(jobs: list[JobText], devices: list[DeviceText], designs: list[DesignText]) -> list[str]: ...
def sweep(
    jobs: list[JobText],
    devices: list[DeviceText],
    designs: list[DesignText],
    points: list[Point],
    threads: int,
    ends_at_refusal: bool,
) -> str: ...
def read_job(path: str) -> bytes: ...
def device_text(name_or_path: str) -> str: ...
def design_text(name_or_path: str) -> str: ...
def devices() -> list[str]:
    """Returns the names of the built-in devices."""

def designs() -> list[str]:
    """Returns the names of the built-in designs, oldest first."""

def defect(words: str) -> None: ...
