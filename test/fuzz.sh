#!/bin/bash
# Every fuzz target of the module for a time, or a number of executions: test/fuzz.sh 30s, or 30000x. The binary of a
# package is built once for all of its targets. Prints what each target did; the exit status is 1 if one failed, or if one
# has executed fewer than a thousand inputs: go test passes if it has not fuzzed at all. An input that shows something new
# is made smaller for a second, not for the minute that go test would take.
set -eu
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
root=$PWD cache=$(go env GOCACHE)/fuzz
export root dir cache
[ ! -w /dev/shm ] || export TMPDIR=/dev/shm # some targets write a file for each input: a disk would set their pace
export time=$1

# package DIR: its targets, one after another.
package() {
	cd "$root/$1"
	local bin=$dir/${1//\//-} path target did
	path=$(go list .)
	go test -c -fuzz . -o "$bin" . || return
	grep -hoE '^func Fuzz[A-Za-z0-9_]*' ./*_test.go | while read -r _ target; do
		if ! "$bin" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$time" -test.fuzzminimizetime 1s -test.fuzzcachedir "$cache/$path" </dev/null >"$bin.$target" 2>&1; then
			cat "$bin.$target"
			echo "FAIL $path $target"
			exit 1
		fi
		did=$(grep -o 'elapsed: .*execs.*' "$bin.$target" | tail -1) || did='not fuzzed'
		echo "$path $target: $did"
		if [ "$(grep -oE 'execs: [0-9]+' <<<"$did" | grep -oE '[0-9]+' || echo 0)" -lt 1000 ]; then
			echo "FAIL $path $target: fewer than 1,000 inputs were executed"
			exit 1
		fi
	done
	rm -f "$bin"
}
export -f package

# Two side by side, so that one is built while another runs.
git ls-files -co --exclude-standard '*_test.go' | xargs grep -lE '^func Fuzz' | while read -r file; do dirname "$file"; done | sort -u |
	xargs -P 2 -I{} bash -euc 'package {}'
