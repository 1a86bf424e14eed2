#!/bin/sh
# run.sh [RESULTS]: runs all of this directory on the machine's GPUs and writes what it finds into RESULTS (./results).
# One GPU is enough: two ranks share it then, as with ONE_GPU=1 on a machine that has more.
#   ROUNDS (5)   how often bench and the loop in C take turns
#   ONLY         a pattern of the parts to run: ONLY='cpu-*'
#   MAX (64M), TYPES_MAX (1M)   the largest size, of every operation and of every type
#   SIZES (8 1024 1048576 67108864 268435456)   what is compared with C
#   ITERS (200000)   calls in a stretch of one rank with small vectors
#   FLAGS        more flags for bench, where it checks: FLAGS='-n 1'
#   BUDGET       flags for budget: BUDGET='-stretches 200 -rounds 3'
#   DEVICES, CORES   how many there are, if not as many as the system says
# Its exit status is 1 if anything has failed.
set -u
cd "$(dirname "$0")" || exit 1
results=${1:-results}
mkdir -p "$results"
rounds=${ROUNDS:-5}
failed=0
devices=${DEVICES:-$(find /dev -maxdepth 1 -name 'nvidia[0-9]*' 2>/dev/null | wc -l)}
[ "$devices" -gt 0 ] || { echo "run.sh: no /dev/nvidia0 here; DEVICES=n says how many devices there are" >&2; exit 1; }
cores=${CORES:-$(nproc)}
# Where there is no NCCL but the one of a Python, as PyTorch's, that is taken.
if [ -z "${GOCCL_NCCL_LIB:-}" ] && ! ./loop version >/dev/null 2>&1; then
	found=$(python3 -c 'import nvidia.nccl as n; print(list(n.__path__)[0] + "/lib/libnccl.so.2")' 2>/dev/null)
	[ -f "$found" ] && export GOCCL_NCCL_LIB="$found"
fi
version=$(./loop version) || exit 1

# Two ranks: each on a device of its own, or both on the one.
if [ "$devices" -gt 1 ] && [ "${ONE_GPU:-0}" != 1 ]; then
	one=0 how="a device each"
	two="./bench -backend nccl -np 2"
else
	one=1 how="NCCL_HOSTID"
	if [ "$version" -ge 23003 ]; then
		export NCCL_MULTI_RANK_GPU_ENABLE=1
		how="NCCL_MULTI_RANK_GPU_ENABLE"
	fi
	two="./bench launch -np 2 -- ./rank.sh ./bench -backend nccl -device 0"
fi

# wanted NAME: whether ONLY asks for that part.
wanted() {
	# shellcheck disable=SC2254 # a pattern
	case $1 in ${ONLY:-*}) return 0 ;; esac
	return 1
}

# part NAME COMMAND..: runs it, with its output in RESULTS/NAME.txt.
part() {
	name=$1
	shift
	wanted "$name" || return 0
	echo "$*" >"$results/$name.txt"
	if timeout "${LIMIT:-600}" "$@" >>"$results/$name.txt" 2>&1; then
		echo "ok      $name"
	else
		echo "FAILED  $name (exit $?): $results/$name.txt"
		failed=1
	fi
}

{
	uname -a
	nvidia-smi 2>/dev/null || echo "no nvidia-smi"
	echo "NCCL $version, $devices devices, $cores cores; two ranks: $how"
	env | grep -E '^(NCCL|GOCCL|CUDA)_' || true
} >"$results/machine.txt" 2>&1

real=1
[ "${GOCCL_ALLOW_FAKE:-}" = 1 ] && real=0 # a rehearsal

more="-e ${MAX:-64M} ${FLAGS:-}"
few="-e ${TYPES_MAX:-1M} ${FLAGS:-}"
less= # where two processes take turns on one GPU: a call lasts until both have had one, 1 to 5 ms
[ "$one" = 1 ] && less="-n 5 -f 8"
# shellcheck disable=SC2086 # commands with their flags
{
	part all-1 ./bench -backend nccl -op all -np 1 $more -J "$results/all-1.json" -html "$results/all-1.html"
	part all-2 $two -op all $less $more -J "$results/all-2.json" -html "$results/all-2.html"
	part registered $two -op all -R 1 $less $more -J "$results/registered.json"
	part graph $two -op allreduce -G 3 $less $more -J "$results/graph.json"
	part types $two -op allreduce -d all -o all -f 8 $less $few
	if [ "$one" = 0 ]; then
		[ "$devices" -gt 2 ] && part "all-$devices" ./bench -backend nccl -op all -np "$devices" $more -J "$results/all-$devices.json" -html "$results/all-$devices.html"
		[ "$version" -ge 22703 ] && part windows $two -op all -R 2 $more -J "$results/windows.json"
		part threads ./bench -backend nccl -op all -t 2 $few
	elif [ -n "${NCCL_MULTI_RANK_GPU_ENABLE:-}" ]; then
		part threads ./bench -backend nccl -op all -t 2 -device 0 $few
	else
		wanted threads && echo "NOT RUN threads: NCCL $version takes two ranks on one GPU only from two processes"
	fi
}
# What a call costs its caller, by path, and beside it what torch.distributed takes, where it is.
# shellcheck disable=SC2086 # flags
{
	part budget ./budget -profile "$results/budget.prof" ${BUDGET:-}
	part budget-one-core env GOMAXPROCS=1 ./budget -stretches 20000 ${BUDGET:-}
}
if wanted torch && python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
	part torch python3 ./torch_call.py
else
	wanted torch && echo "NOT RUN torch: no python3 with torch and a device"
fi
# Two ranks on device 0: every collective, graphs, registered memory, calls that differ, ranks that are killed or stopped, Abort.
GOCCL_REAL=1 part onegpu ./onegpu.test -test.v
if [ "$real" = 1 ]; then
	GOCCL_REAL=1 part native ./native.test -test.v -test.run 'TestReal|TestOverhead'
	[ "$devices" -ge 3 ] && GOCCL_REAL=1 part product ./native.test -test.v -test.run 'TestProduct$|TestProductInput|TestProductKilled|TestProductMismatch'
	GOCCL_TEST_GPU=1 part gpu ./gpu.test -test.v
fi

# The CPU engine, where each rank has a core of its own.
for np in 2 4 8 16; do
	if [ "$np" -le "$cores" ]; then
		# shellcheck disable=SC2086
		part "cpu-$np" ./bench -backend cpu -op all -np "$np" $more -J "$results/cpu-$np.json" -html "$results/cpu-$np.html"
	else
		wanted "cpu-$np" && echo "NOT RUN cpu-$np: $cores cores"
	fi
done

# compare RANKS BENCH..: the same calls by bench and by the loop in C, in turns.
compare() {
	np=$1
	shift
	for size in ${SIZES:-8 1024 1048576 67108864 268435456}; do
		iters=200
		[ "$size" -lt 1048576 ] && iters=2000
		[ "$size" -lt 1048576 ] && [ "$np" = 1 ] && iters=${ITERS:-200000} # nothing is launched, and short stretches cost more a call
		[ -n "$less" ] && [ "$np" = 2 ] && iters=100
		for round in $(seq "$rounds"); do
			# shellcheck disable=SC2086 # nothing, or the device
			c=$(timeout 120 ./loop "$size" "$iters" "$np" $device 2>>"$results/compare.err")
			ours=$(timeout 120 "$@" -b "$size" -e "$size" -n "$iters" -c 0 -csv "$results/.row.csv" >/dev/null 2>>"$results/compare.err" &&
				awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } $at["place"] == "in" { print $at["time_us"] }' "$results/.row.csv")
			if [ -z "$c" ] || [ -z "$ours" ]; then
				echo "FAILED  compare with $np ranks at $size bytes: $results/compare.err"
				failed=1
				return
			fi
			echo "$size $np $round $c $ours" >>"$results/compare.txt"
		done
	done
	echo "ok      compare with $np ranks"
}

if wanted compare; then
	device=
	[ "$one" = 1 ] && device=0
	echo "size ranks round c_us goccl_us" >"$results/compare.txt"
	compare 1 ./bench -backend nccl -np 1
	# shellcheck disable=SC2086
	compare 2 $two
	rm -f "$results/.row.csv"
	awk 'NR > 1 { k = $2 " " $1; n[k]++; c[k, n[k]] = $4; g[k, n[k]] = $5 }
		function median(a, s, k,   v, i, j, t) {
			for (i = 1; i <= k; i++) v[i] = a[s, i]
			for (i = 1; i <= k; i++) for (j = i + 1; j <= k; j++) if (v[j] < v[i]) { t = v[i]; v[i] = v[j]; v[j] = t }
			return v[int((k + 1) / 2)]
		}
		END { for (k in n) { split(k, p, " "); a = median(c, k, n[k]); b = median(g, k, n[k]); printf "%d ranks, %d bytes: C %.3f us, goccl %.3f us, %+.3f us, bandwidth %.4f of C\n", p[1], p[2], a, b, b - a, a / b } }' \
		"$results/compare.txt" | sort -n -k 1,1 -k 3,3 | tee "$results/summary.txt"
fi
exit $failed
