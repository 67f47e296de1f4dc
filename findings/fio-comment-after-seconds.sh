#!/usr/bin/env bash
# fio 3.33 reads `runtime=2s // two seconds` as two microseconds.
#
# Behind a number with its unit, fio drops text that it does not know, such as a comment of another
# language. With it goes the unit `s`: the rest is taken as microseconds, and the job ends at once,
# with exit code 0 and no message. A number without a unit keeps its seconds, and one in `ms` its
# milliseconds, so that the fault shows in one of three jobs that look alike:
#
#   runtime=2s            2.0 s, some two thousand reads with pauses of 1 ms
#   runtime=2 // x        2.0 s
#   runtime=2000ms // x   2.0 s
#   runtime=2s // x       0 s, no read
#
# Seen with fio 3.33-3 of Debian 12 (bookworm), 2026-11-27. Needs apt-get and python3. Fails if this
# changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/fio.bash"

# Prints the milliseconds that a job with this run time took.
took() {
    printf '%s\n' '[job]' ioengine=null size=1g rw=read bs=4k thinktime=1ms time_based "runtime=$1" >"$scratch/job.fio"
    fio --output-format=json "$scratch/job.fio" |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["jobs"][0]["read"]["runtime"])'
}

status=0
for text in '2s' '2 // x' '2000ms // x' '2s // x'; do
    ms="$(took "$text")"
    echo "runtime=$text: $ms ms"
    if [[ "$text" == '2s // x' ]]; then
        ((ms < 10)) || status=1
    else
        ((ms >= 1900)) || status=1
    fi
done
((status == 0)) || echo "fio $FIO_VERSION no longer behaves as described" >&2
exit "$status"
