#!/usr/bin/env bash
# User seconds that ns-2 takes for a benchmark workload: the median over RUNS seeds, of the whole process.
# After the seconds stands what ns-2 runs instead, if it cannot run the workload itself.
# usage: run.sh A|B|C [RUNS]
# Exit code 4: the program `ns` is missing.
set -euo pipefail

workload=${1:-}
runs=${2:-5}
here=$(dirname "$0")
instead=
case $workload in
A) drive() { ns "$here/dumbbell.tcl" 10 100 100 100 20 1 "$1"; } ;;
B) drive() { ns "$here/dumbbell.tcl" 200 1000 1000 20 5 2 "$1"; } ;;
C)
    instead=two_uncoupled_tcp
    drive() { ns "$here/twopath.tcl" 1.5; }
    ;;
*)
    echo "run.sh: workload \"$workload\"; expected A, B or C" >&2
    exit 2
    ;;
esac
if ! command -v ns >/dev/null; then
    echo "run.sh: the program ns is missing; on Debian: apt-get install ns2" >&2
    exit 4
fi

TIMEFORMAT=%3U
for seed in $(seq "$runs"); do
    { time drive "$seed" >/dev/null; } 2>&1
done | sort -n | awk -v instead="$instead" '{ seconds[NR] = $1 } END { print seconds[int((NR + 1) / 2)], instead }'
