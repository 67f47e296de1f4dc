#!/usr/bin/env bash
# Records the events of the running Linux's block layer for each job file of a folder, on null_blk.
#
#     record.sh FOLDER     as root, with fio, blktrace and the module null_blk; uses CPU 0
#
# The head of a job file configures the recording, a line each: `; null_blk: ` parameters of the
# module, `; queue: ` attributes of the queue in sysfs, `; scheduler: ` a scheduler to record under,
# `; keep: ` what to keep of the events (see recording.py). The script writes FOLDER/JOB.SCHEDULER
# if it is missing, and refuses a recording with dropped events.
set -euo pipefail
cd "$1"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
traces="$(mktemp -d)"
trap 'rm -rf "$traces"' EXIT

# head_of KEY JOB: prints the values of KEY in the head of a job file.
head_of() { sed -n "s/^; $1: //p" "$2"; }

record() {
    local job="$1" scheduler="$2" out="$3" attribute tracer
    # shellcheck disable=SC2046 # parameters are words
    modprobe null_blk nr_devices=1 $(head_of null_blk "$job")
    echo "$scheduler" >/sys/block/nullb0/queue/scheduler
    for attribute in $(head_of queue "$job"); do
        echo "${attribute#*=}" >"/sys/block/nullb0/queue/${attribute%%=*}"
    done
    blktrace -b 1024 -n 8 -d /dev/nullb0 -D "$traces" -o t >"$traces/log" 2>&1 &
    tracer=$!
    sleep 0.3
    fio "$job" >"$traces/fio"
    kill -INT "$tracer"
    wait "$tracer" || true
    modprobe -r null_blk
    if grep -i 'dropped [1-9]' "$traces/log"; then
        echo "$out: events were dropped" >&2
        return 1
    fi
    # shellcheck disable=SC2046 # options are words
    python3 "$here/recording.py" $(head_of keep "$job" | sed 's/^/--/') "$traces/t" >"$out"
    rm -f "$traces"/*
}

uname -r
for job in *.fio; do
    for scheduler in $(head_of scheduler "$job"); do
        out="${job%.fio}.$scheduler"
        [[ -e "$out" ]] || record "$job" "$scheduler" "$out"
    done
done
