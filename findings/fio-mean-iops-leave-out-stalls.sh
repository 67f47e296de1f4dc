#!/usr/bin/env bash
# fio 3.33 leaves the time of a stall out of the mean and the minimum of its IOPS.
#
# The line `iops : min=, max=, avg=` of a report, `iops_mean` and `bw_mean` in JSON, and the logs of
# `write_iops_log` with `log_avg_msec` come from samples of half a second. An interval in which no
# I/O ended gives no sample, rather than a zero. So the worse a disk stalls, the better its mean
# looks beside `iops`, and the minimum is never 0.
#
# Here a job does 500 I/Os in half a second, and nothing in the next two seconds, and again, for ten
# seconds. It has 200 IOPS by its number of I/Os. Their mean is 500 to 700, and no sample is 0.
#
# Seen with fio 3.33-3 of Debian 12 (bookworm), 2026-11-29; fio 3.39 of Debian 13 and the source of
# 3.42 do the same. Needs apt-get and python3. Fails if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/fio.bash"

cd "$scratch"
fio --name=job --ioengine=null --size=1g --rw=randread --rate_iops=1000 --thinktime=2s --thinktime_blocks=500 \
    --rate_ignore_thinktime=1 --runtime=10 --time_based --write_iops_log=log --log_avg_msec=500 \
    --output-format=json >report
python3 - report log_iops.1.log <<'PYTHON'
import json
import sys

read = json.load(open(sys.argv[1]))["jobs"][0]["read"]
logged = [int(line.split(",")[1]) for line in open(sys.argv[2])]
print(f"IOPS {read['iops']:.0f}, their mean {read['iops_mean']:.0f}, minimum {read['iops_min']}, "
      f"samples {read['iops_samples']}; {len(logged)} in the log, the least is {min(logged)}")
if read["iops_mean"] < 2 * read["iops"] or read["iops_samples"] > 12 or min(read["iops_min"], *logged) == 0:
    sys.exit("fio no longer behaves as described")
PYTHON
