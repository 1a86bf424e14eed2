#!/bin/bash
# faults.sh: what becomes of a job when the network between its hosts fails. Linux, root.
#
# usage: faults.sh [CASE]...      by default all
#
# It makes three hosts with netlab.sh, runs a job of three ranks of test/faults on them, one a host, and
# spoils the network while they call on. Each case says what every rank must report, within which
# time.
#
#   delay      30 ms each way, and jitter: nothing is reported
#   loss       2 % of all frames: nothing is reported
#   partition  host 3 is cut off: 1 and 2 name its rank, and it names one of them, within PeerTimeout + 1 s
#   oneway     only what host 3 sends is lost: the same
#   unplug     host 3's link goes down: the same
#   late       host 3 is cut off, and comes back after it was given up: the same
# shellcheck source=test/lab/ranks.sh
. "$(dirname "$0")/ranks.sh"
lab 3

# quiet CASE: nothing may have been reported.
quiet() {
	if [ "$(cat "$tmp"/out.* | grep -c '^done')" = 3 ]; then
		echo "ok   $1"
	else
		echo "FAIL $1"
		cat "$tmp"/out.*
		failed=1
	fi
}

# named CASE: ranks 0 and 1 name rank 2, in time; rank 2 names another.
named() {
	local r ms limit=$(((peer + 1) * 1000 * 2)) # twice the promise: the lab's hosts share their cores
	for r in 0 1 2; do
		ms=$(sed -n "s/^lost rank $([ "$r" = 2 ] && echo '[01]' || echo 2) after \([0-9]*\) ms.*/\1/p" "$tmp/out.$r")
		if [ -z "$ms" ] || [ "$ms" -gt "$limit" ]; then
			echo "FAIL $1: rank $r"
			cat "$tmp"/out.*
			failed=1
			return
		fi
		took="${took:-} $ms"
	done
	echo "ok   $1: reported after$took ms since the last call that worked"
}

failed=0
[ $# -gt 0 ] || set -- delay loss partition oneway unplug late
for c in "$@"; do
	took=''
	pids=()
	rm -f "$tmp"/out.*
	job 3 TestNetRank
	until_said calling 3 || exit 1
	case $c in
	delay) "$net" delay 3 30 0 10 ;;
	loss) "$net" loss 3 2 ;;
	partition) "$net" partition 3 1 && "$net" partition 3 2 ;;
	oneway) "$net" cut 3 1 && "$net" cut 3 2 ;;
	unplug) "$net" link 3 down ;;
	late) "$net" partition 3 1 && "$net" partition 3 2 && sleep $((peer + 2)) && "$net" heal ;;
	*)
		echo "faults.sh: no case $c"
		exit 2
		;;
	esac
	finish
	case $c in
	delay | loss) quiet "$c" ;;
	*) named "$c" ;;
	esac
done
exit $failed
