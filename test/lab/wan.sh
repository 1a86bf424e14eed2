#!/bin/bash
# wan.sh: an AllReduce of float32 between four hosts with slow links, beside what the wire alone takes. Linux, root.
#
# usage: wan.sh [PROFILE]...      by default all
#
#   100-20    100 Mbit/s, 20 ms between any two hosts, 16 MB
#   100-100   100 Mbit/s, 100 ms, 16 MB
#   1000-20   1 Gbit/s, 20 ms, 32 MB
#   1000-100  1 Gbit/s, 100 ms, 32 MB
#   20-200    20 Mbit/s, 200 ms, 0.1 % lost, 4 MB
#
# WAN_BENCH="-op allreduce -d half" adds to the flags of bench. order.sh has two sites of two.
set -u
here=$(cd "$(dirname "$0")" && pwd)
net=$here/netlab.sh
PATH=$PATH:/usr/sbin:/sbin
tmp=$(mktemp -d) || exit 1
trap '"$net" down; rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
CGO_ENABLED=0 go build -C "$here/../.." -o "$tmp/bench" ./bench || exit 1

# wan MBIT RTT LOSS MB
wan() {
	local i r pids=() us bad
	"$net" up 4 || exit 1
	for i in 1 2 3 4; do
		"$net" rate $i "$1" && "$net" delay $i "$(awk "BEGIN { print $2 / 4 }")" "$(awk "BEGIN { print $3 / 2 }")" || exit 1
	done
	for r in 0 1 2 3; do
		# shellcheck disable=SC2086 # a list of words
		env GOCCL_LOG=quiet GOCCL_RANK=$r GOCCL_SIZE=4 GOCCL_ROOT=10.77.0.1:29700 timeout 300 "$net" exec $((r + 1)) \
			"$tmp/bench" -op allreduce -sizes $(($4 * 1000000)) -n 5 -w 2 ${WAN_BENCH:-} >"$tmp/out.$r" 2>&1 &
		pids+=($!)
	done
	bad=0
	for r in "${!pids[@]}"; do
		wait "${pids[r]}" || { bad=$?; echo "rank $r: exit status $bad (124: not done in 300 s)"; cat "$tmp/out.$r"; failed=1; }
	done
	[ "$bad" = 0 ] || { "$net" down; return; }
	us=$(awk '$1 == "'$(($4 * 1000000))'" { print $6 }' "$tmp/out.0")
	awk -v us="$us" -v mbit="$1" -v mb="$4" -v what="$1 Mbit/s, $2 ms, $3 % lost, $4 MB" 'BEGIN {
		wire = 2 * 3 / 4 * mb * 8 / mbit
		printf "%-36s %.3f s, the wire alone %.3f s: %.2f\n", what, us / 1e6, wire, us / 1e6 / wire
	}'
	"$net" down
}

failed=0
[ $# -gt 0 ] || set -- 100-20 100-100 1000-20 1000-100 20-200
for p in "$@"; do
	case $p in
	100-20) wan 100 20 0 16 ;;
	100-100) wan 100 100 0 16 ;;
	1000-20) wan 1000 20 0 32 ;;
	1000-100) wan 1000 100 0 32 ;;
	20-200) wan 20 200 0.1 4 ;;
	*) echo "wan.sh: $p: no such profile" >&2; exit 2 ;;
	esac
done
exit $failed
