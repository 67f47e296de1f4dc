#!/usr/bin/env bash
# fio 3.33 with `nrfiles=2 fdatasync=1` writes one file and syncs the other.
#
# A sync takes the next turn of the round of files, as a write does. With two files in turn, each
# write to the first is followed by fdatasync of the second, which has nothing to sync, until the
# first file is full; then it is the other way around. So the job measures the sync of clean files,
# and the data of no write is durable when the sync behind it returns. With one file, or with
# `file_service_type=sequential`, the file that was written is synced.
#
# The log of the I/Os that fio issues shows it, and so does strace:
#
#   job.0.0 write 0 16384
#   job.0.1 datasync 0 0
#   job.0.0 write 16384 16384
#   job.0.1 datasync 16384 0
#
# Seen with fio 3.33-3 of Debian 12 (bookworm), 2026-11-27. Needs apt-get. Fails if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/fio.bash"

# Prints the files of the first write and of the sync behind it, for a job with the options "$@".
first_sync() {
    mkdir -p "$scratch/files"
    rm -f "$scratch/files"/* "$scratch/log"
    fio --directory="$scratch/files" --name=job --ioengine=psync --rw=write --bs=16k --size=128k --nrfiles=2 \
        --fdatasync=1 --write_iolog="$scratch/log" "$@" >"$scratch/out"
    # Lines: time, path, action, and numbers.
    awk '$3 == "write" && !w { w = $2 } $3 == "datasync" && w { n = split(w, a, "/"); m = split($2, b, "/"); print a[n], b[m]; exit }' \
        "$scratch/log"
}

in_turn="$(first_sync)"
one_by_one="$(first_sync --file_service_type=sequential)"
echo "written and synced, files in turn: $in_turn"
echo "written and synced, one file after the other: $one_by_one"
if [[ "$in_turn" != 'job.0.0 job.0.1' || "$one_by_one" != 'job.0.0 job.0.0' ]]; then
    echo "fio $FIO_VERSION no longer behaves as described" >&2
    exit 1
fi
