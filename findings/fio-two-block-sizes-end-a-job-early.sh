#!/usr/bin/env bash
# fio 3.33 with `rw=randwrite bs=4k,64k` stops before it has written its size, and reports success.
#
# The job does not read, so the size of its reads should not matter. But fio makes its map of used
# blocks for the shortest size of the three, here 16,384 blocks of 4 KiB for 64 MiB, and writes use
# the first 1024 of them only. When the next free block behind a drawn one is number 1024, the write
# would begin at the end of the file, and fio ends the job: after 797 of 1024 writes, 49.8 MiB of
# 64 MiB. With `random_generator=lfsr`, the first number of the generator is beyond the 1024, and
# fio ends without a single write. The exit status is 0 in both cases. A mix of reads and writes
# has its reads in the same map, in other units: it stops after 29.6 MiB of 64 MiB.
#
# Seen with fio 3.33-3 of Debian 12 (bookworm), 2026-11-28; fio 3.39 of Debian 13 stops after 919
# writes, and writes nothing with lfsr. Needs apt-get. Fails if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/fio.bash"

cd "$scratch"

# Prints the MiB that a job of 64 MiB writes with the options $@.
written() {
    fio --name=job --ioengine=null --size=64m --rw=randwrite --output-format=json "$@" >report
    python3 -c 'import json; print(json.load(open("report"))["jobs"][0]["write"]["io_bytes"] / 2**20)'
}

one_size="$(written --bs=64k)"
two_sizes="$(written --bs=4k,64k)"
by_lfsr="$(written --bs=4k,64k --random_generator=lfsr)"
echo "MiB written of 64: one size $one_size, two sizes $two_sizes, two sizes with lfsr $by_lfsr"
if [[ "$one_size" != 64.0 || "$two_sizes" == 64.0 || "$by_lfsr" != 0.0 ]]; then
    echo "fio $FIO_VERSION no longer behaves as described" >&2
    exit 1
fi
