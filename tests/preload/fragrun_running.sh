#!/bin/sh
# The commands in quotes are for other shells to expand.
# shellcheck disable=SC2016
# That the command runs as it would without fragrun: status, signals, arguments, environment.
# shellcheck source=tests/preload/fragrun_support.sh
. "$(dirname "$0")/fragrun_support.sh"
install_into "$work/inst"
run=$work/inst/bin/fragrun

try "$run" sh -c 'exit 42'
expect_status 42 "the command's status"
try "$run" sh -c 'kill -TERM $$'
expect_status 143 "killed by a signal, as the shell tells it"
try "$run" no-such-command-here
expect_status 127 "not found"
printf 'text\n' >"$work/plain"
try "$run" "$work/plain"
expect_status 126 "not executable"
try "$run" "$work/absent/program"
expect_status 127 "a path that is not there"

"$run" sh -c 'echo $$' >"$out" &
pid=$!
wait "$pid"
expect_out "$pid" "the command has fragrun's process id"

"$run" sh -c 'trap "exit 7" TERM; echo ready; while :; do sleep 0.05; done' >"$out" &
pid=$!
tries=0
until grep -q ready "$out" || [ "$tries" -ge 100 ]; do
  sleep 0.05
  tries=$((tries + 1))
done
kill -TERM "$pid"
wait "$pid"
status=$?
expect_status 7 "signals reach the command"

tricky='$HOME "x"  *'
try "$run" -q -- printf '<%s>' 'a b' "$tricky" '' "it's" '--mode' '
'
expect_out "<a b><$tricky><><it's><--mode><
>" "arguments arrive as they are"

try "$run" -- sh -c 'echo "$1"' sh --help
expect_out "--help" "options of the command are its own"
cp "$(PATH=/bin:/usr/bin which true)" "$work/report"
try env "PATH=$work:$PATH" "$run" -- report
expect_status 0 "behind -- even a subcommand's name is a program"

mkdir "$work/with space"
printf '#!/bin/sh\necho "ran $1"\n' >"$work/with space/my tool"
chmod +x "$work/with space/my tool"
try "$run" "$work/with space/my tool" 'an argument'
expect_out "ran an argument" "a command with spaces in its path"
try env PATH="$work/with space:$PATH" "$run" 'my tool' 'an argument'
expect_out "ran an argument" "a folder with spaces in PATH"

try "$run" sh -c 'echo "$LD_PRELOAD"'
expect_out "$work/inst/lib/libfragshim.so" "the library is preloaded"
[ -s "$err" ] && fail "the loader takes the library without a word"
cp "$library_binary" "$work/other.so"
try env "LD_PRELOAD=$work/other.so" "$run" sh -c 'echo "$LD_PRELOAD"'
expect_out "$work/inst/lib/libfragshim.so:$work/other.so" "before what is preloaded already"
try "$run" "$run" sh -c 'echo "$LD_PRELOAD"'
expect_out "$work/inst/lib/libfragshim.so" "fragrun under fragrun preloads once"

try "$run" --simulate 8GiB sh -c 'echo "$STANDIN_MEMORY $STANDIN_AUTO ${LD_LIBRARY_PATH%%:*}"'
expect_out "8GiB 1 $work/inst/lib/fragshim/standin" "the stand-in driver comes first"
try env LD_LIBRARY_PATH=/some/where "$run" --simulate=1024 sh -c 'echo "$LD_LIBRARY_PATH"'
expect_out "$work/inst/lib/fragshim/standin:/some/where" "before the folders that are there"
finish
