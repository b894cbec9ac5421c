#!/bin/sh
# The commands in quotes are for other shells to expand.
# shellcheck disable=SC2016
# What fragrun makes of its options: variables, precedence, complaints.
# shellcheck source=tests/preload/fragrun_support.sh
. "$(dirname "$0")/fragrun_support.sh"
install_into "$work/inst"
run=$work/inst/bin/fragrun

try "$run" --conf max_split_size_mb:128 --mode=observe -- sh -c 'echo "$FRAGSHIM_CONF $FRAGSHIM_MODE $FRAGSHIM_FLAGS"'
expect_out "max_split_size_mb:128 observe CONF,MODE" "flags become variables, and are noted"

try env FRAGSHIM_MODE=off "$run" --mode observe sh -c 'echo "$FRAGSHIM_MODE"'
expect_out observe "a flag wins over the environment"

try env FRAGSHIM_MODE=off "$run" sh -c 'echo "$FRAGSHIM_MODE ${FRAGSHIM_FLAGS-none}"'
expect_out "off none" "without flags the environment stays as it is"

try "$run" -q -v --strict-free --torch native --ipc dedicated --log-interval-ms 50 --trace on env
for pair in QUIET=1 VERBOSE=1 STRICT_FREE=1 TORCH=native IPC=dedicated LOG_INTERVAL_MS=50 TRACE=on; do
  grep -qx "FRAGSHIM_$pair" "$out" || fail "option for $pair"
done

for spelling in "-o a%p.jsonl" "-oa%p.jsonl" "--log a%p.jsonl" "--log=a%p.jsonl"; do
  # The words of a spelling are arguments of their own.
  # shellcheck disable=SC2086
  try "$run" $spelling sh -c 'echo "$FRAGSHIM_LOG $FRAGSHIM_FLAGS"'
  expect_out "a%p.jsonl LOG" "the log by $spelling"
done

# Every variable of the option table has its flag.
variables=$("$tool_binary" config | sed -n 's/^FRAGSHIM_\([A-Z_]*\) .*/\1/p')
[ "$(echo "$variables" | wc -l)" -ge 10 ] || fail "the list of variables"
for variable in $variables; do
  flag=--$(echo "$variable" | sed 'y/ABCDEFGHIJKLMNOPQRSTUVWXYZ_/abcdefghijklmnopqrstuvwxyz-/')
  "$run" --help | grep -q -- "$flag" || fail "$flag is not in the help"
  try "$run" "$flag=bad value!" true
  grep -qF "unknown option" "$err" && fail "$flag is not an option"
done

try "$run" --moed observe touch "$work/started"
expect_status 2 "an unknown option"
expect_in_err "did you mean '--mode'?" "an unknown option names the likely one"
expect_lines_err 1 "an unknown option"
[ -e "$work/started" ] && fail "the command ran in spite of an unknown option"

try "$run" -x true
expect_status 2 "an unknown short option"

try "$run" --mode observ touch "$work/started"
expect_status 2 "a bad value"
expect_in_err "--mode" "a bad value names the flag"
expect_in_err "'observe'" "a bad value names the likely one"
[ -e "$work/started" ] && fail "the command ran in spite of a bad value"

try env FRAGSHIM_CONF=max_split_size:128 "$run" touch "$work/started"
expect_status 2 "a bad key in the environment"
expect_in_err "max_split_size_mb" "a bad key names the likely one"

try "$run" --conf
expect_status 2 "an option without its value"
try "$run"
expect_status 2 "no command"
expect_lines_err 1 "no command"
try "$run" --simulate 8GB true
expect_status 2 "a bad size"
try "$run" --simulate 0 true
expect_status 2 "no memory at all"

try "$run" --help
expect_status 0 "help"
[ -s "$out" ] || fail "help is on stdout"
try "$run" -V
expect_status 0 "version"
grep -q '^fragshim [0-9]' "$out" || fail "the version's text"

try "$run" --conf max_split_size_mb:64 config
expect_status 0 "config"
grep -q 'max_split_size_mb *64 *--conf' "$out" || fail "config shows a value and its source"
try "$run" replay nosuch.csv
expect_status 1 "a trace that is not there"
expect_in_err "nosuch.csv: No such file" "a trace that is not there"
try "$run" replay --policy nativ x.csv
expect_status 2 "a bad policy"
expect_lines_err 1 "a bad policy"
finish
