#!/bin/bash
# churn.sh: a job whose ranks come and go, on four hosts with 100 Mbit/s and 20 ms between any two. Linux, root.
#
# usage: churn.sh [-rate MBIT] [-rtt MS] [FLAG]...      flags of test/lab/churn; by default one minute
#
# Every 4 seconds or so a process is killed, a host is unplugged or plugged in, or a process is started. All ranks
# must have the same bits after each round, and no process may end by itself. With -bars it fails if a time is above
# what it should be; that says something on a machine with nothing else to do.
set -u
here=$(cd "$(dirname "$0")" && pwd)
net=$here/netlab.sh
PATH=$PATH:/usr/sbin:/sbin
rate=100 rtt=20
while [ $# -gt 1 ]; do
	case $1 in
	-rate) rate=$2 ;;
	-rtt) rtt=$2 ;;
	*) break ;;
	esac
	shift 2
done
tmp=$(mktemp -d) || exit 1
trap '"$net" down; rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
CGO_ENABLED=0 go build -C "$here/../.." -o "$tmp/churn" ./test/lab/churn || exit 1
"$net" up 4 || exit 1
for i in 1 2 3 4; do
	"$net" rate $i "$rate" && "$net" delay $i "$(awk "BEGIN { print $rtt / 4 }")" || exit 1
done
GOCCL_SECRET=$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')
export GOCCL_SECRET
"$tmp/churn" -net "$net" "$@"
