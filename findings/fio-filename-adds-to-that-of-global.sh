#!/usr/bin/env bash
# fio 3.33 with `filename` in [global] and in a job does the job's I/O to both files.
#
# A value in a section usually takes the place of that in [global]. A file name is added instead:
# the job has two files, each with half of its size. So a job file that is meant to move one job to
# another disk still writes to the first one. Two lines `filename=` in one section add up, too.
#
# Seen with fio 3.33-3 of Debian 12 (bookworm), 2026-11-29; the source of 3.42 does the same. Needs
# apt-get. Fails if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/fio.bash"

cd "$scratch"
cat >jobs.fio <<'JOBS'
[global]
filename=shared
ioengine=null
size=16k
rw=read

[job]
filename=own
write_iolog=log
JOBS
fio jobs.fio >/dev/null
reads="$(sed -nE "s,.*(own|shared) read ([0-9]+) .*,\1 \2,p" log | sort)"
echo "reads of the job, by file and offset:"
echo "$reads"
if [[ "$reads" != $'own 0\nown 4096\nshared 0\nshared 4096' ]]; then
    echo "fio $FIO_VERSION no longer behaves as described" >&2
    exit 1
fi
