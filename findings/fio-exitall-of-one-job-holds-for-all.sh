#!/usr/bin/env bash
# fio 3.33 with `exitall=0` in one job ends that job when any other job ends.
#
# The option stands in a section, but sets one switch for the whole run, and its value is not read:
# `exitall=0` turns it on like `exitall`. Here the job with the option is to run for three seconds.
# The other one does not have it, ends after one second, and ends both.
#
# Seen with fio 3.33-3 of Debian 12 (bookworm), 2026-11-29; the source of 3.42 does the same. Needs
# apt-get. Fails if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/fio.bash"

cd "$scratch"

# Prints the milliseconds for which the two jobs run, the longer one with the lines $1.
runtimes() {
    cat >jobs.fio <<JOBS
[global]
ioengine=null
size=1g
rate_iops=100
time_based

[short]
filename=a
runtime=1

[long]
filename=b
runtime=3
$1
JOBS
    fio --output-format=json jobs.fio >report
    python3 -c 'import json; print(*(job["job_runtime"] for job in json.load(open("report"))["jobs"]))'
}

without="$(runtimes '')"
with="$(runtimes exitall=0)"
echo "milliseconds of the two jobs: $without without exitall, $with with exitall=0 in the longer one"
read -r _ long <<<"$without"
read -r short ended <<<"$with"
if ((long < 2900 || ended > short + 200)); then
    echo "fio $FIO_VERSION no longer behaves as described" >&2
    exit 1
fi
