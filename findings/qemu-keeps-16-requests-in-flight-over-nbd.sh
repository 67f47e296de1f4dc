#!/usr/bin/env bash
# QEMU 7.2 has at most 16 requests in flight over NBD, be it the client or the server.
#
# The number is a constant of its client and of its server, for each connection, and no option
# changes it. So a guest whose disk is an NBD export cannot use more than 16 of the disk's depth,
# and neither can any client of qemu-nbd or of an export of qemu-storage-daemon. Its queue looks
# deep in the guest; the requests wait in QEMU, and their time there counts as the disk's. With one
# side that is not QEMU's, the other one's limit remains.
#
# Here each of 128 reads lasts 100 ms, however many there are. The reads a second at a depth of 8,
# 16 and 64:
#
#   client    server      8     16     64
#   fio       nbdkit     78    146    580
#   qemu-img  nbdkit     72    137    138
#   fio       qemu-nbd   76    155    152
#
# Seen with fio 3.33-3, nbdkit 1.32.5-1, and qemu-img and qemu-nbd 7.2.22 of Debian 12 (bookworm),
# 2026-11-29; qemu-img 10.0.13 of Debian 13 does the same. Needs apt-get on amd64. Half a minute.
# Fails if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/fio.bash"
unpack_programs nbdkit=1.32.5-1 qemu-utils=1:7.2+dfsg-7+deb12u18+b3

socket="$scratch/socket"
uri="nbd+unix:///?socket=$socket"
server=
trap '[[ -z "$server" ]] || kill "$server"; rm -rf "$scratch"' EXIT
# nbdkit looks for its plugins and filters where it is installed, unless they are named by a path.
parts="$scratch/programs/usr/lib/x86_64-linux-gnu/nbdkit"

# Starts the server "$@".
start() {
    rm -f "$socket"
    start_program "$@"
    server=$!
    while [[ ! -S "$socket" ]]; do sleep 0.1; done
}

# Ends the server.
end() {
    kill "$server"
    wait "$server" || true
    server=
}

# Prints the reads a second of fio, at the depth $1.
reads_of_fio() {
    fio --name=job --ioengine=nbd --uri="$uri" --rw=randread --bs=4k --size=1g --iodepth="$1" --number_ios=128 \
        --output-format=terse --output="$scratch/report"
    cut -d';' -f8 "$scratch/report"
}

# Prints the reads a second of qemu-img, at the depth $1.
reads_of_qemu_img() {
    program qemu-img bench -f raw -t none -s 4096 -c 128 -d "$1" "$uri" |
        awk '/^Run completed/ { printf "%d\n", 128 / $4 }'
}

status=0
# Fails unless the reads a second of $1 at a depth of 64 are $2 times those at 16, within a third.
expect() {
    local at_8 at_16 at_64
    at_8="$("$1" 8)"
    at_16="$("$1" 16)"
    at_64="$("$1" 64)"
    echo "${1//_/ } from ${server_name}: $at_8 at depth 8, $at_16 at 16, $at_64 at 64"
    ((3 * at_16 > 4 * at_8 && 3 * at_64 > 2 * $2 * at_16 && 3 * at_64 < 4 * $2 * at_16)) || status=1
}
server_name=nbdkit
start nbdkit -f -t 64 -U "$socket" --filter="$parts/filters/nbdkit-delay-filter.so" "$parts/plugins/nbdkit-null-plugin.so" \
    size=1G rdelay=100ms
expect reads_of_fio 4
expect reads_of_qemu_img 1
end
server_name=qemu-nbd
start qemu-nbd -t -k "$socket" --image-opts driver=null-co,latency-ns=100000000,size=1G,read-zeroes=off
expect reads_of_fio 1
end
((status == 0)) || echo "QEMU no longer behaves as described" >&2
exit "$status"
