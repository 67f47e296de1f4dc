#!/usr/bin/env bash
# nbdkit 1.32.5 with `--filter=cache` reads 64 KiB for each read of 4 KiB, again and again.
#
# The filter caches what is written. It leaves reads alone, as its manual says, unless
# `cache-on-read=true`. But it handles all requests in its blocks of 64 KiB: a read of a block that
# is not cached fetches the whole block from the plugin, hands out 4 KiB and drops the rest. The
# next read of the same 4 KiB fetches it once more. So random reads through the cache cost the disk
# 16 times as much as without it. The filter `cow` does the same. `cache-min-block-size=4K` or
# `cow-block-size=4K` ends it.
#
# Here 4 KiB at 0, 4 KiB at 4 KiB, and those at 0 once more are read. The sizes of the reads of the
# plugin, by the filter `log`:
#
#   no filter                        4 KiB, 4 KiB, 4 KiB
#   cache                            64 KiB, 64 KiB, 64 KiB
#   cache cache-on-read=true         64 KiB
#   cache cache-min-block-size=4K    4 KiB, 4 KiB, 4 KiB
#   cow                              64 KiB, 64 KiB, 64 KiB
#
# Seen with nbdkit 1.32.5-1 and qemu-io 7.2.22 of Debian 12 (bookworm), 2026-11-29. Needs apt-get on
# amd64. Fails if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/packages.bash"
unpack_programs nbdkit=1.32.5-1 qemu-utils=1:7.2+dfsg-7+deb12u18+b3

# nbdkit looks for its plugins and filters where it is installed, unless they are named by a path.
parts="$scratch/programs/usr/lib/x86_64-linux-gnu/nbdkit"

# Prints the sizes of the plugin's reads, with the filter $1 ("" for none) and its parameters.
reads() {
    local filters=()
    [[ -z "$1" ]] || filters=("--filter=$parts/filters/nbdkit-$1-filter.so")
    rm -f "$scratch/log"
    program nbdkit -U "$scratch/socket" --exit-with-parent "${filters[@]}" \
        "--filter=$parts/filters/nbdkit-log-filter.so" "$parts/plugins/nbdkit-memory-plugin.so" size=1M \
        "logfile=$scratch/log" "${@:2}" -f &
    local server=$!
    while [[ ! -S "$scratch/socket" ]]; do sleep 0.1; done
    program qemu-io -r -f raw -c 'read 0 4k' -c 'read 4k 4k' -c 'read 0 4k' "nbd+unix:///?socket=$scratch/socket" >"$scratch/out"
    kill "$server"
    wait "$server" || true
    rm -f "$scratch/socket"
    sed -nE 's/.* Read id=.* count=(0x[0-9a-f]+) .*/\1/p' "$scratch/log" | while read -r size; do echo $((size / 1024)); done | paste -sd' '
}

status=0
# Fails unless the reads with the filter and the parameters of $2 are $1 KiB long.
expect() {
    local words sizes
    read -ra words <<<"$2"
    sizes="$(reads "${words[@]:-}")"
    echo "${2:-no filter}: reads of $sizes KiB"
    [[ "$sizes" == "$1" ]] || status=1
}
expect '4 4 4' ''
expect '64 64 64' 'cache'
expect '64' 'cache cache-on-read=true'
expect '4 4 4' 'cache cache-min-block-size=4K'
expect '64 64 64' 'cow'
((status == 0)) || echo "nbdkit no longer behaves as described" >&2
exit "$status"
