#!/bin/bash
# order.sh: what the order of hosts is worth where their links differ. Linux, root.
#
# usage: order.sh [CASE]...      sites slow     by default both
#
#   sites  hosts 1 and 3 are one site, 2 and 4 the other: 100 Mbit/s and 20 ms between, 1 Gbit/s inside
#   slow   10 Mbit/s between hosts 1 and 2, 100 Mbit/s else
#
# The order that ccl.Reorder finds may take at most 1.1 of the time of the best order by hand.
set -u
here=$(cd "$(dirname "$0")" && pwd)
net=$here/netlab.sh
PATH=$PATH:/usr/sbin:/sbin
tmp=$(mktemp -d) || exit 1
delay=
cleanup() {
	[ -z "$delay" ] || kill "$delay" 2>/dev/null
	for i in nlta nlte nltc nlbr2; do ip link del $i 2>/dev/null; done
	"$net" down
	rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
CGO_ENABLED=0 go build -C "$here/../.." -o "$tmp/ring" ./test/lab/ring || exit 1
cc -O2 -o "$tmp/netdelay" "$here/netdelay.c" || exit 1

# job FLAG..: a rank on each of four hosts.
job() {
	local r pids=() status=0
	for r in 0 1 2 3; do
		env GOCCL_LOG=quiet GOCCL_RANK=$r GOCCL_SIZE=4 GOCCL_ROOT=10.77.0.1:29700 "$net" exec $((r + 1)) timeout 60 "$tmp/ring" "$@" &
		pids+=($!)
	done
	for r in "${pids[@]}"; do wait "$r" || status=1; done
	return $status
}

slowed() { tc qdisc replace dev "$1" root tbf rate "$2mbit" burst 70000 latency 50ms; }

sites() {
	local i
	for i in 1 2 3 4; do "$net" rate $i 1000; done
	ip link add nlbr2 type bridge && ip link set nlbr2 up
	for i in 2 4; do ip link set nlv$i master nlbr2; done
	# nlbr - nltd=nltc - netdelay - nlte=nltf - nlbr2
	ip link add nltc type veth peer name nltd && ip link add nlte type veth peer name nltf
	ip link set nltd master nlbr up && ip link set nltf master nlbr2 up && ip link set nltc up && ip link set nlte up
	slowed nltd 100 && slowed nltf 100
	"$tmp/netdelay" nltc nlte 10000 0 0 >"$tmp/delay.log" 2>&1 &
	delay=$!
	until grep -q ready "$tmp/delay.log"; do kill -0 $delay && sleep .01 || return 1; done
	job -orders 0.2.1.3,0.2.3.1
}

slow() {
	local i
	for i in 1 2 3 4; do "$net" rate $i 100; done
	ip link add p12 netns nl1 type veth peer name p21 netns nl2
	ip -n nl1 link set p12 up && ip -n nl2 link set p21 up
	ip -n nl1 route add 10.77.0.2/32 dev p12 src 10.77.0.1 && ip -n nl2 route add 10.77.0.1/32 dev p21 src 10.77.0.2
	ip netns exec nl1 tc qdisc replace dev p12 root tbf rate 10mbit burst 70000 latency 50ms
	ip netns exec nl2 tc qdisc replace dev p21 root tbf rate 10mbit burst 70000 latency 50ms
	job -orders 0.2.1.3,0.3.1.2
}

[ $# -gt 0 ] || set -- sites slow
failed=0
for c in "$@"; do
	"$net" up 4 || exit 1
	echo "== $c"
	"$c" || failed=1
	[ -z "$delay" ] || { kill $delay; wait $delay 2>/dev/null; delay=; }
	for i in nltc nlte nlbr2; do ip link del $i 2>/dev/null; done
	"$net" down
done
exit $failed
