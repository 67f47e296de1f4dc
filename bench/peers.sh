#!/bin/sh
# Compares NBD servers in turns. With `scale` or `file` as the first argument it measures ours as
# its load grows, or on a file beside fio; see `bench/peers.sh --help`. Builds our programs first.
set -eu
cd "$(dirname "$0")/.."
cargo build --quiet --release -p blockyard-cli -p blockyard-bench --bin blockyard --bin peers
case "${1:-}" in
    scale | file | --help) ;;
    *) set -- compare "$@" ;;
esac
exec "${CARGO_TARGET_DIR:-target}/release/peers" "$@"
