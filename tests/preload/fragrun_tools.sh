#!/bin/sh
# The commands that read what was recorded, from end to end: what they say, and how they fail.
# shellcheck source=tests/preload/fragrun_support.sh
. "$(dirname "$0")/fragrun_support.sh"
install_into "$work/inst"
run=$work/inst/bin/fragrun
data=$(cd "$(dirname "$script")/../tests/data" && pwd)
log=$data/fuzz/log/run.jsonl trace=$data/oracle/cases/T8.csv

expect_in_out() { grep -qF -- "$1" "$out" || fail "$2: expected on stdout: $1"; }

try "$run" report "$log" "$trace"
expect_status 0 "a log and a trace"
expect_in_out "T8.csv" "a report names its traces"
try "$run" report --json "$log" "$trace"
expect_status 0 "a report as JSON"
expect_in_out '"traces"' "a report as JSON"

sed 's/"rank":"[^"]*"/"rank":"10"/' "$log" >"$work/tenth"
sed 's/"rank":"[^"]*"/"rank":"9"/' "$log" >"$work/ninth"
try "$run" report --json "$work/tenth" "$work/ninth"
[ "$(sed -n 's/.*"rank": "\(.*\)".*/\1/p' "$out" | tr '\n' ' ')" = "9 10 " ] ||
  fail "processes in the order of their ranks"

# Too little for the trace: the report looks for settings that would do.
try "$run" report --capacity 8MiB "$trace"
expect_status 0 "a report of failures"
expect_in_out "failures in 8.00 MiB" "a report of failures"

try "$run" report "$work/absent" "$log"
expect_status 1 "a missing file does not keep the others from being reported"
expect_in_err "absent" "a missing file is named"
[ -s "$out" ] || fail "what there is is reported"
echo '{"schema":2}' >"$work/foreign"
try "$run" report "$work/foreign"
expect_status 1 "a file of no records"
expect_in_err "no record of fragshim's log" "a file of no records"

try "$run" tune "$trace"
expect_status 0 "tune"
try "$run" tune --json --capacity 64MiB "$trace"
expect_status 0 "tune as JSON"
echo "Thread,Time,Action,Pointer,Size,Stream" >"$work/empty.csv"
try "$run" tune "$work/empty.csv"
expect_status 1 "a trace without allocations"
expect_in_err "nothing is allocated in it" "a trace without allocations"

try "$run" convert "$trace" "$work/trace.wrong"
expect_status 2 "an unknown format"
expect_in_err "the name of the output must end in" "an unknown format"
try "$run" convert "$trace" "$work/absent/trace.csv"
expect_status 1 "no such folder"
echo "Thread,Time,Action,Pointer,Size,Stream
1,0:0:0,dance,0x1,1,0" >"$work/bad.csv"
try "$run" convert "$work/bad.csv" "$work/bad.fstrace"
expect_status 1 "a bad line"
mkdir "$work/taken.csv"
try "$run" convert "$trace" "$work/taken.csv"
expect_status 1 "an output that is a folder"
for left in "$work"/*.part; do [ ! -e "$left" ] || fail "half an output stays behind: $left"; done
finish
