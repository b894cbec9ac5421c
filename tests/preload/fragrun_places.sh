#!/bin/sh
# The commands in quotes are for other shells to expand.
# shellcheck disable=SC2016
# Where fragrun finds its parts: installed, in a source tree, through a link, and what it says
# where they are missing.
# shellcheck source=tests/preload/fragrun_support.sh
. "$(dirname "$0")/fragrun_support.sh"
show='echo "$LD_PRELOAD"'

tree=$work/tree
mkdir -p "$tree/scripts" "$tree/build/lib/standin" "$tree/build/bin"
: >"$tree/CMakeLists.txt"
cp "$script" "$tree/scripts/fragrun"
cp "$tool_binary" "$tree/build/bin/fragtool"
cp "$library_binary" "$tree/build/lib/libfragshim.so"
try "$tree/scripts/fragrun" sh -c "$show"
expect_out "$tree/build/lib/libfragshim.so" "in a tree"
try "$tree/scripts/fragrun" --simulate 1GiB true
expect_status 125 "without a stand-in driver"
cp "$library_binary" "$tree/build/lib/standin/libcuda.so.1"
try "$tree/scripts/fragrun" --simulate 1GiB true
expect_status 0 "with a stand-in driver"

install_into "$work/inst"
mkdir "$work/links"
ln -s ../inst/bin/fragrun "$work/links/fragrun"
try env "PATH=$work/links:$PATH" fragrun sh -c "$show"
expect_out "$work/inst/lib/libfragshim.so" "through a link in PATH"

cd "$work/inst/bin" || exit 1
try ./fragrun sh -c "$show"
expect_out "$work/inst/lib/libfragshim.so" "by a relative path"
cd "$work" || exit 1

# The loader splits LD_PRELOAD at spaces: the library must be found all the same.
install_into "$work/a b"
try "$work/a b/bin/fragrun" cat /proc/self/maps
grep -qF "$work/a b/lib/libfragshim.so" "$out" || fail "installed in a folder with a space"
[ -s "$err" ] && fail "nothing is said about a folder with a space"

rm "$work/inst/lib/libfragshim.so"
try "$work/inst/bin/fragrun" true
expect_status 125 "without the library"
expect_lines_err 1 "without the library"
rm "$work/inst/libexec/fragshim/fragtool"
try "$work/inst/bin/fragrun" true
expect_status 125 "without the tool"
try "$work/inst/bin/fragrun" --help
expect_status 0 "help needs nothing"
finish
