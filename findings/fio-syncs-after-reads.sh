#!/usr/bin/env bash
# fio 3.33 with `rw=randrw fsync=8` also syncs after reads.
#
# The manual says that `fsync=8` syncs after every eight writes. fio asks before each I/O whether
# the number of writes so far is a multiple of eight, and a sync after a read does not change that
# number. So behind the eighth write, each read is followed by a sync of its own until the ninth
# write comes. The more a mix reads, the more of its syncs have nothing to write: with 90 % reads
# and `fsync=8`, some 100 writes are followed by some 160 calls of fsync instead of 13.
#
# Seen with fio 3.33-3 of Debian 12 (bookworm), 2026-11-27, in the log of issued I/Os, and the same
# calls with strace. Needs apt-get. Fails if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/fio.bash"

# Runs in the folder of the log, because fio lays out its file where it stands.
cd "$scratch"
fio --name=job --ioengine=psync --rw=randrw --rwmixread=90 --bs=4k --size=4m --fsync=8 --write_iolog="$scratch/log" >out
writes="$(awk '$3 == "write"' log | wc -l)"
syncs="$(awk '$3 == "sync"' log | wc -l)"
echo "writes: $writes, syncs: $syncs"
if ((syncs < 4 * writes / 8)); then
    echo "fio $FIO_VERSION no longer behaves as described" >&2
    exit 1
fi
