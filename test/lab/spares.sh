#!/bin/bash
# spares.sh: what becomes of a job with spares, and of one that grows, when the network between its hosts
# fails. Linux, root.
#
# usage: spares.sh [CASE]...      by default all
#
# It makes five hosts with netlab.sh, and runs jobs of test/faults on them. The first cases have three
# ranks and two spares, one a host: the ranks on hosts 1 to 3, the spares on 4 and 5.
#
#   split      hosts 1 and 2 are cut off from 3, 4 and 5: ranks 0 and 1 end with ErrRankLost, and
#              the spares take their numbers beside rank 2
#   unplug     host 2's link goes down: a spare takes its number, and its rank ends with ErrRankLost
#   stopped    the process on host 2 is stopped: a spare takes its number; when it goes on, it ends
#              with ErrRankLost of itself, and disturbs nobody
#
# In the others a process that comes late waits in a shared directory, and the job grows.
#
#   newcomer   three ranks on hosts 1 to 3. The newcomer's host 4 is cut off while it is taken in: the
#              job goes on as it was, and the newcomer ends
#   member     the same, but host 3 is cut off meanwhile: the other two shrink, and grow with the
#              newcomer to three; rank 2 ends
#   elsewhere  two ranks on host 1, whose name leads to 127.0.1.1. A newcomer on host 2 is taken in
# shellcheck source=test/lab/ranks.sh
. "$(dirname "$0")/ranks.sh"
lab 5

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

# never PATTERN: no process may have said that.
never() {
	if cat "$tmp"/out.* | grep -qE "$1"; then
		echo "FAIL $c: \"$1\" was said"
		failed=1
	fi
}

# pid_of OUT: the process that writes there.
pid_of() { sed -n 's/^pid \([0-9]*\)$/\1/p' "$tmp/out.$1"; }

# until_stopped OUT: wait until that process has stopped itself.
until_stopped() {
	for _ in $(seq 300); do
		[ "$(sed -n 's/^State:\t\(.\).*/\1/p' "/proc/$(pid_of "$1")/status" 2>/dev/null)" = T ] && return
		sleep 0.1
	done
	echo "process $1 has not stopped:"
	cat "$tmp"/out.*
	return 1
}

# cut_off HOST: from hosts 1 to 4.
cut_off() {
	local j
	for j in 1 2 3 4; do [ "$j" = "$1" ] || "$net" partition "$1" "$j"; done
}

# grows OUT FAULT: three ranks, and a newcomer on host 4, which grow to four. That fault happens to process OUT.
grows() {
	local r fault
	mkdir "$tmp/hall"
	for r in 0 1 2; do
		fault=
		[ "$r" = "$1" ] && fault=$2
		run $((r + 1)) "$r" TestNetGrow RANK="$r" WORLD_SIZE=3 MASTER_ADDR=10.77.0.1 MASTER_PORT=29500 GOCCL_HALL="$tmp/hall" GOCCL_FAULTS_GROW=4 GOCCL_FAULT="$fault"
	done
	until_said 'calling as rank' 3 || return
	fault=
	[ 3 = "$1" ] && fault=$2
	run 4 3 TestNetGrow GOCCL_HALL="$tmp/hall" GOCCL_FAULTS_GROW=4 GOCCL_FAULT="$fault"
}

failed=0
[ $# -gt 0 ] || set -- split unplug stopped newcomer member elsewhere
for c in "$@"; do
	before=$failed
	failed=0
	pids=()
	rm -rf "$tmp"/out.* "$tmp/hall"
	case $c in
	split | unplug | stopped)
		job 5 TestNetSpare
		until_said 'calling as rank' 3 || exit 1
		;;
	esac
	case $c in
	split) for i in 1 2; do for j in 3 4 5; do "$net" partition $i $j; done; done ;;
	unplug) "$net" link 2 down ;;
	stopped)
		pid=$(pid_of 1)
		kill -STOP "$pid" && until_said replaced 2 && sleep 1 && kill -CONT "$pid"
		;;
	newcomer)
		grows 3 grow.met:1:stop || exit 1
		until_stopped 3 || exit 1
		cut_off 4
		kill -CONT "$(pid_of 3)"
		;;
	member)
		grows 2 grow.met:1:stop || exit 1
		until_stopped 2 || exit 1
		cut_off 3
		kill -CONT "$(pid_of 2)"
		;;
	elsewhere)
		mkdir "$tmp/hall"
		printf '127.0.0.1 localhost\n127.0.1.1 h1\n' >"$tmp/hosts"
		# shellcheck disable=SC2016 # expanded there
		within=(unshare --mount sh -c 'mount --bind "$0" /etc/hosts && exec "$@"' "$tmp/hosts")
		for r in 0 1; do
			run 1 "$r" TestNetGrow RANK=$r WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 GOCCL_HALL="$tmp/hall" GOCCL_FAULTS_GROW=3
		done
		within=()
		until_said 'calling as rank' 2 || exit 1
		run 2 2 TestNetGrow GOCCL_HALL="$tmp/hall" GOCCL_FAULTS_GROW=3
		;;
	*)
		echo "spares.sh: no case $c"
		exit 2
		;;
	esac
	finish
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
	newcomer)
		for r in 0 1 2; do expect "$r" "^calling as rank $r of 3, fresh \[\]" '^done as rank '"$r"' of 3'; done
		expect 3 '^ended: .*Join: .*rank 0 was not found'
		never 'calling as rank . of 4'
		never '^shrunk'
		;;
	member)
		for r in 0 1; do expect "$r" '^shrunk to 2: .*rank 2 lost' "^calling as rank $r of 3, fresh \[2\]" "^done as rank $r of 3"; done
		expect 2 '^ended: '
		expect 3 '^calling as rank 2 of 3, fresh \[2\]' '^done as rank 2 of 3'
		never 'calling as rank . of 4'
		;;
	elsewhere) for r in 0 1 2; do expect "$r" "^calling as rank $r of 3, fresh \[2\]" "^done as rank $r of 3"; done ;;
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
		echo "ok   $c:$(sed -n 's/^replaced after \([0-9]*\) ms.*/ replaced \1 ms after the last call that worked/p; s/^\(shrunk to [0-9]*\):.*/ \1/p' "$tmp"/out.* | sort -u | paste -sd,)"
	else
		cat "$tmp"/out.*
	fi
	failed=$((failed | before))
done
exit $failed
