#!/bin/bash
# Compares the instructions that the core takes for an I/O with the committed ones.
#
#   bench/instructions.sh           compares
#   bench/instructions.sh --write   writes the counts of this tree to bench/instructions.txt
#
# Exit status: 0 if no case takes over 2 % more than committed; 1 if one does, or a case has come or
# gone; 2 if another compiler made the committed counts, so that the differences are only a report.
set -euo pipefail
cd "$(dirname "$0")/.."
readonly COMMITTED=bench/instructions.txt

cargo build --locked --quiet --release -p blockyard-bench --bin instructions
counts="$(rustc --version)"
for prefix in none/ mq-deadline/ kyber/ bfq/ adios/; do
    counts+=$'\n'"$("${CARGO_TARGET_DIR:-target}/release/instructions" "$prefix" | tail -n +2)"
done

if [[ "${1:-}" == --write ]]; then
    {
        printf '# Instructions per I/O of the core, and the compiler that they hold for. Written by bench/instructions.sh --write.\n'
        printf '%s\n' "$counts"
    } >"$COMMITTED"
    exit
fi

awk '
    /^#/ { next }
    FNR == NR && /^rustc / { compiler = $0; next }
    FNR == NR { committed[$1] = $2; next }
    /^rustc / { other = $0 != compiler; if (other) print "another compiler: " $0 ", committed: " compiler; next }
    !($1 in committed) { printf "%-40s%8d  is not committed\n", $1, $2; failed = 1; next }
    {
        verdict = ""
        if ($2 * 100 > committed[$1] * 102) { verdict = "  over 2 % more"; failed = 1 }
        printf "%-40s%8d  committed %8d  %+6.1f %%%s\n", $1, $2, committed[$1], ($2 / committed[$1] - 1) * 100, verdict
        delete committed[$1]
    }
    END {
        for (name in committed) { printf "%-40s is committed and was not counted\n", name; failed = 1 }
        if (other) exit 2
        if (failed) { print "find what costs more; if it is worth it, run bench/instructions.sh --write and say why in the commit"; exit 1 }
    }
' "$COMMITTED" - <<<"$counts"
