#!/usr/bin/env bash
# fio 3.33 with `rw=randrw rwmixread=90 rate_iops=1000` reads and writes half and half.
#
# A rate of one number holds for each direction. One would expect 1000 reads and, in the ratio of
# the mix, 111 writes a second. But a direction that has reached its rate gives its turn to the one
# that has not, so both reach 1000, and the ratio is lost without a message. Without a rate, the
# same job has 90 % reads. `rate=4m` does the same. `rate_iops=900,100` names both rates, and has
# the ratio by them.
#
# Seen with fio 3.33-3 of Debian 12 (bookworm), 2026-11-29; fio 3.39 of Debian 13 does the same.
# Needs apt-get and python3. Fails if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/fio.bash"

# Prints the share of reads of a mix of 90 % reads with the options $@, in percent.
reads() {
    fio --name=job --ioengine=null --size=1g --rw=randrw --rwmixread=90 --runtime=2 --time_based \
        --output-format=json "$@" >"$scratch/report"
    python3 - "$scratch/report" <<'PYTHON'
import json
import sys

job = json.load(open(sys.argv[1]))["jobs"][0]
reads, writes = (job[kind]["total_ios"] for kind in ("read", "write"))
print(round(100 * reads / (reads + writes)))
PYTHON
}

without="$(reads)"
with="$(reads --rate_iops=1000)"
by_bytes="$(reads --rate=4m)"
of_each="$(reads --rate_iops=900,100)"
echo "percent of reads: no rate $without, rate_iops=1000 $with, rate=4m $by_bytes, rate_iops=900,100 $of_each"
if ((without != 90 || with != 50 || by_bytes != 50 || of_each != 90)); then
    echo "fio $FIO_VERSION no longer behaves as described" >&2
    exit 1
fi
