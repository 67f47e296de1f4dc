#!/usr/bin/env bash
# fio 3.33 takes `wait 1000` in an iolog for "go on a second after the start", not for 1 ms.
#
# The manual says that the action `wait` of a log of version 2 waits for its number of microseconds,
# counted from the previous `wait`. fio takes the number as milliseconds since the run began, and a
# time that has passed is no wait. So of a log that reads a block every ms, the first read comes
# after nearly a second, and all others follow at once: a replay with the pace of the trace becomes
# a pause and a flood. `replay_time_scale` does not change it. A log of version 3, with a time
# before each action, is in microseconds and keeps its pace.
#
# Here four reads have a `wait` before each. The milliseconds of the run when they ended:
#
#   wait 1000, 1000, 1000, 1000    890, 890, 890, 890       the manual: 1, 2, 3, 4
#   wait 2000, 1000, 3000, 1000    1890, 1890, 2890, 2890   the manual: 2, 3, 6, 7
#
# Seen with fio 3.33-3 of Debian 12 (bookworm), 2026-11-29; fio 3.39 of Debian 13 and the source of
# 3.42 do the same, and so do their manuals. Needs apt-get. Ten seconds. Fails if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/fio.bash"

cd "$scratch"
truncate -s 1M disk
# Prints the milliseconds at which reads end that have a wait of each of the numbers $@ before them.
times() {
    local wait offset=0
    printf '%s\n' 'fio version 2 iolog' "$scratch/disk add" "$scratch/disk open" >trace
    for wait in "$@"; do
        printf '%s\n' "$scratch/disk wait $wait 0" "$scratch/disk read $offset 4096" >>trace
        offset=$((offset + 4096))
    done
    echo "$scratch/disk close" >>trace
    fio --name=job --ioengine=psync --read_iolog=trace --write_lat_log=log --output=report
    cut -d, -f1 log_clat.1.log | paste -sd' '
}

status=0
# Fails unless the reads behind the waits $2... end at the seconds $1, less the start of the job.
expect() {
    local ended
    ended="$(times "${@:2}")"
    echo "wait ${*:2}: reads end at $ended ms"
    [[ "$(for ms in $ended; do echo $(((ms + 500) / 1000)); done | paste -sd' ')" == "$1" ]] || status=1
}
expect '1 1 1 1' 1000 1000 1000 1000
expect '2 2 3 3' 2000 1000 3000 1000
((status == 0)) || echo "fio $FIO_VERSION no longer behaves as described" >&2
exit "$status"
