#!/bin/bash
# Runs go test. Package ccl takes half of the time and mostly waits, so its tests run as two processes beside the
# other packages.
#   test/halves.sh [-readme FILE] [-skip NAMES] FLAGS.. -- PACKAGES..    NAMES and FLAGS are those of go test
# Prints what test/skipreport does, a line as soon as a package is done. The exit status is 1 if a test failed.
set -u
cd "$(dirname "$0")/.." || exit 1
skip='' flags=() report=()
while [ "$1" != -- ]; do
	case $1 in
	-skip) skip="$2|" && shift ;;
	-readme) report+=("$1" "$2") && shift ;;
	-short | -race) report+=("$1") && flags+=("$1") ;;
	*) flags+=("$1") ;;
	esac
	shift
done
shift
# Without those that have no file for this platform, which go test refuses by name.
packages=$(go list -e -f '{{if or .GoFiles .CgoFiles .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' "$@") || exit 1
[ -n "$packages" ] || { echo "no package of $* is for this platform"; exit 1; }
others=$(grep -vE '^[^/]+/[^/]+/[^/]+/ccl$' <<<"$packages")
ccl=$(grep -E '^[^/]+/[^/]+/[^/]+/ccl$' <<<"$packages")

count=$(($(wc -l <<<"$packages") + (${#ccl} > 0))) # package ccl ends twice
report+=(-packages "$count")
echo "$count packages to test; at first they are compiled"

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
go build -o "$dir/report" ./test/skipreport || exit 1
parts=()
# part ARGS..: go test of them, into a pipe that the report reads. How it ends is kept: go test may fail without a word.
part() {
	local pipe=$dir/${#parts[@]}
	mkfifo "$pipe" || exit 1
	{ go test -json "${flags[@]}" "$@" >"$pipe" 2>&1 || touch "$dir/failed"; } &
	parts+=("$pipe")
}
half='^Test[PR]' # about half of the time
if [ -n "$ccl" ]; then
	part -skip "$skip$half" "$ccl"
	part -skip "$skip^(Test[^PR]|Example|Fuzz)" "$ccl"
fi
if [ -n "$others" ]; then
	# shellcheck disable=SC2086 # a list
	part ${skip:+-skip "${skip%|}"} $others
fi
"$dir/report" "${report[@]}" "${parts[@]}"
status=$?
wait
[ $status -eq 0 ] && [ ! -e "$dir/failed" ]
