#!/bin/bash
# usage: streams.sh [-quick] [ROUNDS [CONNECTIONS..]]
#
# What one rank sends another over TCP, beside a program in C that does nothing else (test/peers/c/stream.c), and iperf3 where
# that is installed, with as many connections each: on loopback, and between two hosts of netlab by delay, loss and rate. In
# each round every program runs once, in turn; the medians count, in MB/s. The ratio is goccl's bandwidth to the better of the
# others. At the end the latency of 8 bytes on loopback: one way of a ping-pong, by C and by Send and Recv. With -quick it takes
# a few minutes: fewer rounds, and each network once, with 1 and 4 connections.
set -u
lab=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$lab/../.." && pwd)
rounds=5 connections=(1 2 4 8) delays=(1 5 20) losses=(0.01 0.1 1)
if [ "${1:-}" = -quick ]; then
	shift
	rounds=3 connections=(1 4) delays=(5) losses=(0.1)
fi
rounds=${1:-$rounds}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- "${connections[@]}"
ms=${STREAMS_MS:-1500}
bytes=67108864
"$lab/need" netlab delay || exit 1

tmp=$(mktemp -d -p "${GOCCL_LAB_SHARED:-/var/lib}" goccl-lab.XXXXXX) || exit 1 # which all hosts see
net=$tmp/lab/netlab.sh
# shellcheck disable=SC2317 # called by trap
clean() {
	cd /
	[ -z "${up:-}" ] || "$net" down # never another's
	rm -rf "$tmp"
}
trap clean EXIT
trap 'exit 130' INT TERM

cp -R "$lab" "$tmp/lab" || exit 1
cc -O2 -o "$tmp/stream" "$root/test/peers/c/stream.c" || exit 1
(cd "$root" && CGO_ENABLED=0 go build -o "$tmp/peers" ./test/peers) || exit 1
"$net" up 2 && up=1 || exit 1
iperf=
! command -v iperf3 >/dev/null || iperf=1

# on HOST COMMAND..: on a host of the lab; host 0 is this machine.
on() {
	local host=$1
	shift
	if [ "$host" = 0 ]; then timeout 30 "$@"; else timeout 30 "$net" exec "$host" "$@"; fi
}

# begin FILE HOST COMMAND..: starts a server, and waits until it listens.
begin() {
	local out=$1 i
	shift
	: >"$out"
	on "$@" >"$out" 2>&1 &
	server=$!
	for i in $(seq 200); do
		! grep -qiE 'ready|listening' "$out" || return 0
		sleep 0.02
	done
	return 1
}

# by_c FROM TO ADDRESS CONNECTIONS: bytes per microsecond are MB/s
by_c() {
	begin "$tmp/server" "$2" "$tmp/stream" serve 17001 "$4" && on "$1" "$tmp/stream" send "$3" 17001 "$4" "$ms"
	wait "$server"
}

by_iperf() {
	begin "$tmp/server" "$2" iperf3 -s -1 -p 17002 --forceflush &&
		on "$1" iperf3 -c "$3" -p 17002 -P "$4" -t "$(awk "BEGIN { print $ms / 1000 }")" -J |
		awk '/"sum_received"/ { sum = 1 } sum && /bits_per_second/ { gsub(/[^0-9.e+]/, "", $2); print $2 / 8e6; exit }'
	wait "$server"
}

# by_goccl FROM TO ADDRESS CONNECTIONS: Broadcasts of 64 MiB
by_goccl() {
	local args=(measure -op broadcast -min "$bytes" -max "$bytes" -repeats 1 -target_ms "$ms")
	export GOCCL_SOCKETS=$4 GOCCL_LOG=quiet
	if [ "$1" = 0 ]; then
		"$tmp/peers" job 2 2 "${args[@]:1}"
	else
		export GOCCL_SIZE=2 GOCCL_ROOT=10.77.0.$1:29555
		GOCCL_RANK=0 on "$1" "$tmp/peers" "${args[@]}" &
		GOCCL_RANK=1 on "$2" "$tmp/peers" "${args[@]}"
		wait $!
		unset GOCCL_SIZE GOCCL_ROOT
	fi 2>/dev/null | awk -F, '$5 > 0 { print $4 / $5 }'
}

median() { sort -g "$1" | awk '{ v[NR] = $1 } END { print NR ? (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 : "-" }'; }

# compare NAME FROM TO ADDRESS CONNECTIONS..
compare() {
	local name=$1 from=$2 to=$3 address=$4 n p c i g
	shift 4
	for n; do
		rm -f "$tmp"/*.out
		for _ in $(seq "$rounds"); do
			for p in c ${iperf:+iperf} goccl; do "by_$p" "$from" "$to" "$address" "$n" >>"$tmp/$p.out"; done
		done
		c=$(median "$tmp/c.out") i=- g=$(median "$tmp/goccl.out")
		[ -z "$iperf" ] || i=$(median "$tmp/iperf.out")
		printf '%-28s %11d %9s %9s %9s %6s\n' "$name" "$n" "$c" "$i" "$g" \
			"$(awk -v c="$c" -v i="$i" -v g="$g" 'BEGIN { best = i + 0 > c + 0 ? i + 0 : c + 0; if (best > 0) printf "%.2f", g / best; else print "-" }')"
	done
}

printf '%-28s %11s %9s %9s %9s %6s\n' "" connections C iperf3 goccl ratio
compare loopback 0 0 127.0.0.1 "$@"
compare "two hosts" 1 2 10.77.0.2 "$@"
for delay in "${delays[@]}"; do
	"$net" delay 1 "$delay"
	compare "$delay ms each way" 1 2 10.77.0.2 "$@"
done
for loss in "${losses[@]}"; do
	"$net" delay 1 5 "$loss"
	compare "5 ms each way, $loss % lost" 1 2 10.77.0.2 "$@"
done
"$net" heal
"$net" loss 2 0.1
compare "0.1 % lost" 1 2 10.77.0.2 "$@"
"$net" heal
"$net" rate 1 1000
compare "1 Gbit/s" 1 2 10.77.0.2 "$@"
"$net" heal

for _ in $(seq "$rounds"); do
	begin "$tmp/server" 0 "$tmp/stream" serve 17001 1 && "$tmp/stream" pingpong 127.0.0.1 17001 300 >>"$tmp/pingpong"
	wait "$server"
	GOCCL_LOG=quiet "$tmp/peers" job 2 2 -op pingpong -min 8 -max 8 -repeats 5 -target_ms 60 2>/dev/null | awk -F, '$5 > 0 { print $5 / 2 }' >>"$tmp/ours"
done
printf '\n8 bytes on loopback, us, one way of a ping-pong: C %s, goccl %s\n' "$(median "$tmp/pingpong")" "$(median "$tmp/ours")"
