#!/usr/bin/env bash
# sysbench 1.0.20 counts calls of fsync as I/O requests: more than half of its 2000 are no I/O.
#
# `sysbench fileio --file-test-mode=rndrw` says that it calls fsync "each 100 requests". It has 128
# files by default, and syncs each of them then, also those that nothing was written to. So 60
# reads and 40 writes are followed by 128 calls of fsync, more than three per write. Each call is
# one of the events that `--events` limits, and is in the average and the percentiles of the
# latency: of 2000 "IO requests", 900 read or write. With `--file-fsync-freq=0`, all 2000 do. With
# `--file-num=1` there is one call per 100 requests.
#
# Seen with sysbench 1.0.20+ds-5 of Debian 12 (bookworm), 2026-11-29. Needs apt-get, and 16 MB in
# the temporary folder. Fails if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/packages.bash"
unpack_programs sysbench=1.0.20+ds-5

mkdir "$scratch/files"
cd "$scratch/files"

# Prints the numbers of reads and writes, and of calls of fsync, of 2000 events with the options $@.
# The calls at the end of the run are among them.
counts() {
    rm -f ./*
    program sysbench fileio --file-total-size=16M --file-test-mode=rndrw "$@" prepare >/dev/null
    program sysbench fileio --file-total-size=16M --file-test-mode=rndrw --time=0 --events=2000 "$@" run >report
    awk '/reads\/s:/ { ios += $2 } /writes\/s:/ { ios += $2 } /fsyncs\/s:/ { syncs = $2 }
        /total time:/ { time = $3 } END { printf "%.0f %.0f\n", ios * time, syncs * time }' report
}

read -r ios syncs <<<"$(counts)"
read -r ios_without _ <<<"$(counts --file-fsync-freq=0)"
read -r ios_of_one syncs_of_one <<<"$(counts --file-num=1)"
echo "2000 events: $ios reads and writes, $syncs calls of fsync"
echo "with --file-fsync-freq=0: $ios_without reads and writes"
echo "with --file-num=1: $ios_of_one reads and writes, $syncs_of_one calls of fsync"
if ((ios > 1000 || syncs < 1000 || ios_without < 1900 || ios_of_one < 1900)); then
    echo "sysbench no longer behaves as described" >&2
    exit 1
fi
