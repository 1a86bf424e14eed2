#!/bin/bash
# go test, where package ccl takes as long as all others together and waits for most of that: its tests run as two
# processes beside the others'.
#   test/halves.sh [-skip NAMES] FLAGS.. -- PACKAGES..    NAMES and FLAGS are those of go test
# Prints what each of the three has printed, one after another. The exit status is 1 if one failed.
set -u
cd "$(dirname "$0")/.." || exit 1
skip='' flags=()
while [ "$1" != -- ]; do
	if [ "$1" = -skip ]; then
		skip="$2|" && shift
	else
		flags+=("$1")
	fi
	shift
done
shift
packages=$(go list "$@") || exit 1
others=$(grep -vE '^[^/]+/[^/]+/[^/]+/ccl$' <<<"$packages")
ccl=$(grep -E '^[^/]+/[^/]+/[^/]+/ccl$' <<<"$packages")

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
part() {
	local name=$1
	shift
	go test "${flags[@]}" "$@" >"$dir/$name" 2>&1
}
half='^Test[PR]' # about half of the time
parts=()
if [ -n "$ccl" ]; then
	part 1 -skip "$skip$half" "$ccl" &
	parts+=($!)
	part 2 -skip "$skip^(Test[^PR]|Example|Fuzz)" "$ccl" &
	parts+=($!)
fi
if [ -n "$others" ]; then
	# shellcheck disable=SC2086 # a list
	part 3 ${skip:+-skip "${skip%|}"} $others &
	parts+=($!)
fi
failed=0
for p in "${parts[@]}"; do
	wait "$p" || failed=1
done
cat "$dir"/[123]
exit $failed
