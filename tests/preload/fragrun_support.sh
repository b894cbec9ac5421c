# shellcheck shell=sh disable=SC2034
# Sourced by the fragrun tests: a fresh installation in a folder of its own, and checks.
# Arguments of each test: the script, fragtool, a library to stand for libfragshim.so.
set -u
[ $# -eq 3 ] || { echo "usage: $0 FRAGRUN FRAGTOOL LIBRARY" >&2; exit 2; }
script=$1 tool_binary=$2 library_binary=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
out=$work/out err=$work/err status=0

# A process of the test's own would pass these on.
for name in $(env | sed -n 's/^\(FRAGSHIM_[A-Z_]*\|PYTORCH_[A-Z_]*\|STANDIN_[A-Z_]*\)=.*/\1/p'); do
  unset "$name"
done
unset LD_PRELOAD LD_LIBRARY_PATH

# Lays out an installation in folder $1, as cmake --install does.
install_into() {
  mkdir -p "$1/bin" "$1/lib/fragshim/standin" "$1/libexec/fragshim"
  cp "$script" "$1/bin/fragrun"
  cp "$tool_binary" "$1/libexec/fragshim/fragtool"
  cp "$library_binary" "$1/lib/libfragshim.so"
  cp "$library_binary" "$1/lib/fragshim/standin/libcuda.so.1"
}

# Runs a command; keeps its output, messages and status.
try() {
  "$@" >"$out" 2>"$err" </dev/null
  status=$?
}

fail() {
  failures=$((failures + 1))
  printf 'FAILED: %s\n  status %s\n  stdout: %s\n  stderr: %s\n' "$1" "$status" \
    "$(cat "$out")" "$(cat "$err")" >&2
}

expect_status() { [ "$status" -eq "$1" ] || fail "$2: expected status $1"; }
expect_out() { [ "$(cat "$out")" = "$1" ] || fail "$2: expected on stdout: $1"; }
expect_in_err() { grep -qF -- "$1" "$err" || fail "$2: expected on stderr: $1"; }
expect_lines_err() { [ "$(wc -l <"$err")" -eq "$1" ] || fail "$2: expected $1 lines on stderr"; }

finish() {
  [ "$failures" -eq 0 ] || { echo "$failures checks failed" >&2; exit 1; }
  exit 0
}
