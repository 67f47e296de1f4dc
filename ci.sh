#!/usr/bin/env bash
# Every check, for people and for machines. `./ci.sh` lists the steps, which are in crates/xtask.
# Here is only what must happen before that crate can be built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

die() {
    printf 'ci: %s\n' "$*" >&2
    exit 1
}

# install_cc: installs a C compiler where apt-get exists.
install_cc() {
    local root=() install=(apt-get install -y -q --no-install-recommends gcc libc6-dev)
    command -v apt-get >/dev/null || return 0
    echo "ci: installing gcc libc6-dev, for cc"
    [[ $EUID -eq 0 ]] || root=(sudo)
    [[ $EUID -eq 0 || -t 0 ]] || root=(sudo -n)
    "${root[@]}" "${install[@]}" || { "${root[@]}" apt-get update -q && "${root[@]}" "${install[@]}"; } || true
}

# One target directory for all manifests.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
command -v cargo >/dev/null || die "cargo is missing: install Rust"
command -v cc >/dev/null || install_cc
command -v cc >/dev/null || die "Rust needs a C compiler to link (Debian packages: gcc libc6-dev)"
cargo build -q --locked -p xtask
# Not `cargo run`, which would pass its own variables on to each program that a step starts.
exec "$CARGO_TARGET_DIR/debug/xtask" "$@"
