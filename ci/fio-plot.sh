#!/usr/bin/env bash
# Lets fio-plot draw results and logs of the program, under the names that its own benchmark script
# gives to files.
#
#   ci/fio-plot.sh PROGRAM FIO-PLOT FOLDER
#
# FOLDER is made anew. Fails if a chart is not drawn.
set -euo pipefail

program="$1" plot="$2" folder="$3"
rm -rf "$folder"
mkdir -p "$folder/results" "$folder/logs" "$folder/charts"

for depth in 1 8; do
    for jobs in 1 2; do
        "$program" run --quiet --device emmc-hs400 --design none --output-format json \
            --output "$folder/results/randread-$depth-$jobs.json" -- --name=test --rw=randread --bs=4k --direct=1 \
            --size=64m --runtime=2 --time_based --ioengine=libaio "--iodepth=$depth" "--numjobs=$jobs" --group_reporting
    done
done
"$program" run --quiet --device emmc-hs400 --design none --output "$folder/logs/summary" -- --name=test --rw=randread \
    --bs=4k --direct=1 --size=64m --runtime=3 --time_based --ioengine=libaio --iodepth=8 --log_avg_msec=100 \
    "--write_lat_log=$folder/logs/randread-iodepth-8-numjobs-1" "--write_iops_log=$folder/logs/randread-iodepth-8-numjobs-1" \
    "--write_bw_log=$folder/logs/randread-iodepth-8-numjobs-1"

draw() {
    local chart="$folder/charts/$1.png"
    MPLBACKEND=Agg "$plot" -T "$1" -r randread -o "$chart" "${@:2}" > "$folder/charts/$1.log" 2>&1 && [[ -s "$chart" ]] || {
        cat "$folder/charts/$1.log" >&2
        printf 'fio-plot did not draw %s\n' "$1" >&2
        return 1
    }
}

draw bars-by-depth -i "$folder/results" -l -n 1 -d 1 8
draw bars-by-jobs -i "$folder/results" -N -d 8 -n 1 2
draw bars-in-space -i "$folder/results" -L -t iops
draw histogram -i "$folder/results" -H -d 8 -n 1
draw compared -i "$folder/results" "$folder/results" -C -d 8 -n 1
draw over-time -i "$folder/logs" -g -d 8 -n 1 -t iops lat bw
printf 'fio-plot: 6 charts drawn from results and logs\n'
