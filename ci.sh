#!/usr/bin/env bash
# Every check, for people and for machines. `./ci.sh` lists the steps, which are in crates/xtask.
# Below is only what must be there before that crate can be built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# One target directory for all manifests.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
if ! command -v cargo >/dev/null; then
    echo "ci: cargo is missing: install Rust" >&2
    exit 1
fi
if ! command -v cc >/dev/null && command -v apt-get >/dev/null; then
    echo "ci: installing gcc libc6-dev, for cc"
    root=(sudo -n)
    [[ ! -t 0 ]] || root=(sudo)
    [[ $EUID -ne 0 ]] || root=()
    "${root[@]}" apt-get install -y -q --no-install-recommends gcc libc6-dev ||
        { "${root[@]}" apt-get update -q &&
            "${root[@]}" apt-get install -y -q --no-install-recommends gcc libc6-dev; } || true
fi
cargo build -q --locked -p xtask
# Not `cargo run`, which would give its own variables to each program that a step starts.
exec "$CARGO_TARGET_DIR/debug/xtask" "$@"
