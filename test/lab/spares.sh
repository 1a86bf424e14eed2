#!/bin/bash
# spares.sh: what becomes of a job with spares when the network between its hosts fails. Linux, root.
#
# usage: spares.sh [CASE]...      by default all
#
# It makes five hosts with netlab.sh, and runs a job of three ranks and two spares of test/faults on
# them, one a host: the ranks on hosts 1 to 3, the spares on 4 and 5.
#
#   split      hosts 1 and 2 are cut off from 3, 4 and 5: ranks 0 and 1 end with ErrRankLost, and
#              the spares take their numbers beside rank 2
#   unplug     host 2's link goes down: a spare takes its number, and its rank ends with ErrRankLost
#   stopped    the process on host 2 is stopped: a spare takes its number; when it goes on, it ends
#              with ErrRankLost of itself, and disturbs nobody
set -u
here=$(cd "$(dirname "$0")" && pwd)
net=$here/netlab.sh
PATH=$PATH:/usr/sbin:/sbin
peer=2 # PeerTimeout of the job, in seconds

tmp=$(mktemp -d) || exit 1
pids=()
cleanup() {
	[ ${#pids[@]} -eq 0 ] || kill -KILL "${pids[@]}" 2>/dev/null
	[ ${#pids[@]} -eq 0 ] || wait "${pids[@]}" 2>/dev/null
	"$net" down >/dev/null 2>&1
	rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

CGO_ENABLED=0 go test -C "$here/../.." -c -o "$tmp/faults.test" ./test/faults || exit 1
"$net" up 5 >/dev/null || exit 1

# until_said WORDS N: wait until so many lines begin with these words.
until_said() {
	for _ in $(seq 300); do
		[ "$(cat "$tmp"/out.? | grep -c "^$1")" -ge "$2" ] && return
		sleep 0.1
	done
	echo "no $2 lines \"$1\":"
	cat "$tmp"/out.?
	return 1
}

# start: five ranks, rank r on host r+1; each writes to $tmp/out.r.
start() {
	local r
	pids=()
	rm -f "$tmp"/out.?
	for r in 0 1 2 3 4; do
		RANK=$r WORLD_SIZE=5 MASTER_ADDR=10.77.0.1 MASTER_PORT=29500 GOCCL_SECRET=the-secret-of-the-lab \
			GOCCL_FAULTS_NET=$peer timeout -k 1 90 "$net" exec $((r + 1)) "$tmp/faults.test" -test.run '^TestNetSpare$' >"$tmp/out.$r" 2>&1 &
		pids+=($!)
	done
	until_said 'calling as rank' 3
}

# expect RANK PATTERN..: each must match a line of what the rank has said.
expect() {
	local r=$1 p
	shift
	for p in "$@"; do
		if ! grep -qE "$p" "$tmp/out.$r"; then
			echo "FAIL $c: rank $r has not said \"$p\""
			failed=1
		fi
	done
}

failed=0
[ $# -gt 0 ] || set -- split unplug stopped
for c in "$@"; do
	before=$failed
	failed=0
	start || exit 1
	case $c in
	split) for i in 1 2; do for j in 3 4 5; do "$net" partition $i $j; done; done ;;
	unplug) "$net" link 2 down ;;
	stopped)
		pid=$(sed -n 's/^calling as rank 1 .* pid \([0-9]*\)$/\1/p' "$tmp/out.1")
		kill -STOP "$pid" && until_said replaced 2 && sleep 1 && kill -CONT "$pid"
		;;
	*)
		echo "spares.sh: no case $c"
		exit 2
		;;
	esac
	wait "${pids[@]}"
	pids=()
	"$net" heal
	"$net" link 2 up 2>/dev/null
	case $c in
	split)
		# The cuts come one after the other: a word of the others may still have reached it by the other host of its side.
		minority='^ended after [0-9]+ ms: .*Replace: .*lost: (this side of a partition has [12] of 5 ranks|the others have given this rank up)'
		expect 0 "$minority"
		expect 1 "$minority"
		expect 2 '^replaced after [0-9]+ ms: .*lost' '^calling as rank 2 of 3, fresh \[0 1\]' '^done'
		expect 3 '^calling as rank 0 of 3, fresh \[0 1\]' '^done'
		expect 4 '^calling as rank 1 of 3, fresh \[0 1\]' '^done'
		;;
	*)
		for r in 0 2; do
			expect $r '^replaced after [0-9]+ ms: .*rank 1 lost' "^calling as rank $r of 3, fresh \[1\]" '^done'
		done
		expect 1 '^ended after [0-9]+ ms: .*Replace: .*lost'
		expect 3 '^calling as rank 1 of 3, fresh \[1\]' '^done'
		expect 4 '^unused'
		;;
	esac
	if [ $failed = 0 ]; then
		echo "ok   $c:$(sed -n 's/^replaced after \([0-9]*\) ms.*/ replaced \1 ms after the last call that worked/p' "$tmp"/out.? | sort -u | paste -sd,)"
	else
		cat "$tmp"/out.?
	fi
	failed=$((failed | before))
done
exit $failed
