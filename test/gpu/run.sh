#!/bin/sh
# run.sh [RESULTS]: runs all of this directory on the machine's GPUs and writes what it finds into RESULTS (./results).
# ROUNDS (5) is how often bench and the loop in C take turns. Its exit status is 1 if anything has failed.
set -u
cd "$(dirname "$0")" || exit 1
results=${1:-results}
mkdir -p "$results"
rounds=${ROUNDS:-5}
failed=0
devices=${DEVICES:-$(find /dev -maxdepth 1 -name 'nvidia[0-9]*' 2>/dev/null | wc -l)}
[ "$devices" -gt 0 ] || { echo "run.sh: no /dev/nvidia0 here; DEVICES=n says how many devices there are" >&2; exit 1; }

# part NAME COMMAND..: runs it, with its output in RESULTS/NAME.txt.
part() {
	name=$1
	shift
	if timeout "${LIMIT:-600}" "$@" >"$results/$name.txt" 2>&1; then
		echo "ok      $name"
	else
		echo "FAILED  $name (exit $?): $results/$name.txt"
		failed=1
	fi
}

{
	uname -a
	nvidia-smi 2>/dev/null || echo "no nvidia-smi"
	env | grep -E '^(NCCL|GOCCL|CUDA)_' || true
} >"$results/machine.txt" 2>&1

real=1
[ "${GOCCL_ALLOW_FAKE:-}" = 1 ] && real=0 # a rehearsal

for np in 1 2 "$devices"; do
	[ "$np" -le "$devices" ] || continue
	part "all-$np" ./bench -backend nccl -op all -np "$np" -e "${MAX:-64M}" -J "$results/all-$np.json" -html "$results/all-$np.html"
done
part threads ./bench -backend nccl -op all -t "$([ "$devices" -gt 1 ] && echo 2 || echo 1)" -e 1M
part types ./bench -backend nccl -op allreduce -d all -o all -np "$([ "$devices" -gt 1 ] && echo 2 || echo 1)" -e 1M -f 8
if [ "$real" = 1 ]; then
	GOCCL_REAL=1 part native ./native.test -test.v -test.run 'TestReal|TestOverhead'
	[ "$devices" -ge 3 ] && GOCCL_REAL=1 part product ./native.test -test.v -test.run 'TestProduct$|TestProductInput|TestProductKilled|TestProductMismatch'
	GOCCL_TEST_GPU=1 part gpu ./gpu.test -test.v
fi

# The same calls by bench and by the loop in C, in turns; the medians, and how they compare.
np=$([ "$devices" -gt 1 ] && echo 2 || echo 1)
echo "size ranks round c_us goccl_us" >"$results/compare.txt"
for size in 8 1024 1048576 ${LARGE:-67108864 268435456}; do
	iters=200
	[ "$size" -lt 1048576 ] && iters=2000
	for round in $(seq "$rounds"); do
		c=$(timeout 120 ./loop "$size" "$iters" "$np" 2>>"$results/compare.err")
		ours=$(timeout 120 ./bench -backend nccl -np "$np" -b "$size" -e "$size" -n "$iters" -c 0 -csv "$results/.row.csv" >/dev/null 2>>"$results/compare.err" &&
			awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } $at["place"] == "in" { print $at["time_us"] }' "$results/.row.csv")
		if [ -z "$c" ] || [ -z "$ours" ]; then
			echo "FAILED  compare at $size bytes: $results/compare.err"
			failed=1
			break
		fi
		echo "$size $np $round $c $ours" >>"$results/compare.txt"
	done
done
rm -f "$results/.row.csv"
awk 'NR > 1 { n[$1]++; c[$1, n[$1]] = $4; g[$1, n[$1]] = $5; order[$1] = NR }
	function median(a, s, k,   v, i, j, t) {
		for (i = 1; i <= k; i++) v[i] = a[s, i]
		for (i = 1; i <= k; i++) for (j = i + 1; j <= k; j++) if (v[j] < v[i]) { t = v[i]; v[i] = v[j]; v[j] = t }
		return v[int((k + 1) / 2)]
	}
	END { for (s in n) { a = median(c, s, n[s]); b = median(g, s, n[s]); printf "%d bytes: C %.3f us, goccl %.3f us, %+.3f us, bandwidth %.4f of C\n", s, a, b, b - a, a / b } }' \
	"$results/compare.txt" | sort -n | tee "$results/summary.txt"
exit $failed
