#!/bin/bash
# Every fuzz target of the module for a time, or a number of executions: test/fuzz.sh 30s, or 30000x. The binary of a
# package is built once for all of its targets. Prints what each target did, and its executions in each second of a
# processor's time, which other programs on the machine hardly change. Then it names those with fewer than a thousand, but
# for the reasons below, and for targets that had a processor for less than ten seconds: their start takes some of them.
# The exit status is 1 if one failed, or if one has executed fewer than a thousand inputs: go test passes if it has not
# fuzzed at all. An input that shows something new is made smaller for a second, not for the minute that go test would take.
set -eu
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
root=$PWD cache=$(go env GOCACHE)/fuzz
export root dir cache
[ ! -w /dev/shm ] || export TMPDIR=/dev/shm # some targets write a file for each input: a disk would set their pace
export time=$1

# reason PACKAGE TARGET: why a target may be slow.
reason() {
	case "${1#github.com/goccl/goccl/} $2" in
	*) return 1 ;;
	esac
}

# outran FILE: go test found nothing, and failed as the time was over (golang/go#75804, mended in Go 1.27).
outran() {
	! grep -qE 'Failing input|panic|fuzzing process' "$1" && [ "$(sed -n '/^--- FAIL/,$p' "$1" | sed 1d | head -1)" = '    context deadline exceeded' ]
}

# package DIR: its targets, one after another.
package() {
	cd "$root/$1"
	local bin=$dir/${1//\//-} path target did execs rate judged TIMEFORMAT='%U %S'
	path=$(go list .)
	go test -c -fuzz . -o "$bin" . || return
	grep -hoE '^func Fuzz[A-Za-z0-9_]*' ./*_test.go | while read -r _ target; do
		if ! { time "$bin" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$time" -test.fuzzminimizetime 1s -test.fuzzcachedir "$cache/$path" </dev/null >"$bin.$target" 2>&1; } 2>"$bin.time" && ! outran "$bin.$target"; then
			cat "$bin.$target"
			echo "FAIL $path $target"
			exit 1
		fi
		did=$(grep -o 'elapsed: .*execs.*' "$bin.$target" | tail -1) || did='not fuzzed'
		execs=$(grep -oE 'execs: [0-9]+' <<<"$did" | grep -oE '[0-9]+') || execs=0
		read -r rate judged < <(awk -v n="$execs" '{ s = $1 + $2; printf "%d %d\n", n / (s + 0.001), (s >= 10) }' "$bin.time")
		echo "$path $target: $did, $rate a processor's second"
		if [ "$execs" -lt 1000 ]; then
			echo "FAIL $path $target: fewer than 1,000 inputs were executed"
			exit 1
		fi
		[ "$rate" -ge 1000 ] || [ "$judged" = 0 ] || reason "$path" "$target" || echo "$path $target: $rate" >>"$dir/slow"
	done
	rm -f "$bin"
}
export -f package reason outran

# Two side by side, so that one is built while another runs.
status=0
git ls-files -co --exclude-standard '*_test.go' | xargs grep -lE '^func Fuzz' | while read -r file; do dirname "$file"; done | sort -u |
	xargs -P 2 -I{} bash -euc 'package {}' || status=1
if [ -e "$dir/slow" ]; then
	echo "Fewer than 1,000 executions in a processor's second, and no reason in test/fuzz.sh:"
	sort "$dir/slow"
fi
exit $status
