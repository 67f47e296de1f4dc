#!/usr/bin/env bash
# fio 3.33 with two servers and `group_reporting` reports no sum, if a group has two sections.
#
# `fio --client` adds an entry "All clients" to the results of its servers, in JSON the last one of
# `client_stats`. It comes when as many results have arrived as jobs were announced. A server
# announces the number of sections, and with `group_reporting` sends one result for each group. So
# for a job file of one section the sum is there, and a second section of the same group takes it
# away, without a message. A program that reads the last entry takes one server's result for that of
# all.
#
# Here each server does 100 reads a second for one second in each of two jobs. The entries and their
# reads:
#
#   two sections                          a 100, b 100, a 100, b 100, All clients 400
#   one with numjobs=2, group_reporting   a 200, a 200, All clients 400
#   two sections, group_reporting         a 200, a 200
#
# Seen with fio 3.33-3 of Debian 12 (bookworm), 2026-11-29; the source of 3.42 does the same. Needs
# apt-get and python3, and two ports of this machine. Ten seconds. Fails if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/fio.bash"

cd "$scratch"
ports="$(python3 -c 'import socket
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*(one.getsockname()[1] for one in sockets))')"
servers=()
clients=()
for port in $ports; do
    start_program fio --server="127.0.0.1,$port" >"messages.$port" 2>&1
    servers+=($!)
    clients+=("--client=ip:127.0.0.1,$port" jobs.fio)
done
trap 'kill "${servers[@]}"; rm -rf "$scratch"' EXIT
sleep 2

# Prints the names of the results, one for each letter or for all clients, and their reads in
# hundreds, for the sections $1 with the lines $2.
results() {
    printf '%s\n' '[global]' ioengine=null size=1g rw=randread rate_iops=100 runtime=1 time_based "$2" >jobs.fio
    for section in $1; do echo "[$section]" >>jobs.fio; done
    fio "${clients[@]}" --output-format=json --output=report >messages 2>&1
    python3 - <<'PYTHON'
import json

text = open("report").read()
entries = json.loads(text[text.index("{"):])["client_stats"]
print(", ".join(f"{entry['jobname']} {round(entry['read']['total_ios'] / 100)}" for entry in entries))
PYTHON
}

status=0
# Fails unless the results of the sections $2 with the lines $3 are $1.
expect() {
    local seen
    seen="$(results "$2" "$3")"
    echo "sections '$2', ${3//$'\n'/ }: hundreds of reads of $seen"
    [[ "$seen" == "$1" ]] || status=1
}
expect 'a 1, b 1, a 1, b 1, All clients 4' 'a b' ''
expect 'a 2, a 2, All clients 4' a $'numjobs=2\ngroup_reporting'
expect 'a 2, a 2' 'a b' group_reporting
((status == 0)) || echo "fio $FIO_VERSION no longer behaves as described" >&2
exit "$status"
