#!/usr/bin/env bash
# fio 3.33 reports the ramp itself, if a job has done its `size` within its `ramp_time`.
#
# What a job does in its ramp is to be left out of the results, so that they show a disk that has
# warmed up. fio clears its counters when the ramp has passed. A job that has done its `size`, its
# `io_size` or its `number_ios` before that never comes to this, and reports the ramp itself, with
# no message. So a disk that became fast enough, or a file that is too small, has the figures of its
# warm-up. What is done in the ramp also counts towards `size` and `io_size`, but not towards
# `number_ios`.
#
# Here a job of 12 MiB does 1000 reads of 4 KiB a second, 3072 in all, with several ramps, and
# another one has number_ios=3000. The reads that are reported:
#
#   ramp_time    0      2      4
#   size=12m     3072   1071   3072
#   number_ios   3000   3000   3000, after 3 s
#
# Seen with fio 3.33-3 of Debian 12 (bookworm), 2026-11-29; fio 3.39 of Debian 13 does the same.
# Needs apt-get and python3. Half a minute. Fails if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/fio.bash"

cd "$scratch"
# Prints the reads that a job with the options $@ reports, and its seconds.
reads() {
    fio --name=job --ioengine=null --rw=randread --bs=4k --rate_iops=1000 --output-format=json --output=report "$@"
    python3 -c 'import json
job = json.load(open("report"))["jobs"][0]
print(job["read"]["total_ios"], job["elapsed"])'
}

status=0
# Fails unless a job with the options $3... reports $1 to $2 reads.
expect() {
    local reads seconds
    read -r reads seconds <<<"$(reads "${@:3}")"
    echo "${*:3}: $reads reads reported, ended in second $seconds"
    if ((reads < $1 || reads > $2)); then status=1; fi
}
expect 3072 3072 --size=12m
expect 900 1200 --size=12m --ramp_time=2
expect 3072 3072 --size=12m --ramp_time=4
expect 3000 3000 --size=64m --number_ios=3000 --ramp_time=2
expect 3000 3000 --size=64m --number_ios=3000 --ramp_time=4
((status == 0)) || echo "fio $FIO_VERSION no longer behaves as described" >&2
exit "$status"
