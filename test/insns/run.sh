#!/bin/bash
# Instructions that the kernels of package reduce take on arm64 for each 64 bytes of their result, as QEMU counts them, beside Go's
# compiled loops: a table in Markdown. It needs qemu-aarch64 with plugins, and a C compiler.
set -eu -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cc -O1 -shared -fPIC -o "$dir/insns.so" plugin/insns.c
GOOS=linux GOARCH=arm64 CGO_ENABLED=0 go build -o "$dir/insns" .

# count LEVEL KERNEL TYPE TIMES: instructions of the whole program, in which nothing else runs
count() {
	GOGC=off GOMAXPROCS=1 qemu-aarch64 -cpu max -plugin "$dir/insns.so" "$dir/insns" "$@" 2>"$dir/count" && cat "$dir/count"
}
# per64 LEVEL KERNEL TYPE: those of 3000 calls more, for each 64 bytes; "-" where there is no such kernel
per64() {
	local few many
	few=$(count "$@" 100) && many=$(count "$@" 3100) || { echo -; return; }
	awk -v n=$((many - few)) 'BEGIN { printf "%.0f", n / 3000 / (16384 / 64) }'
}
levels=$(qemu-aarch64 -cpu max "$dir/insns" 2>&1 | sed 's/.*\[\(.*\)\].*/\1/') || true
best=${levels%% *}
# row KERNEL TYPE
row() { echo "| $1 | $2 | $(per64 generic "$@") | $(per64 neon "$@") | $(per64 "$best" "$@") |"; }
echo "| kernel | type | Go | neon | $best |"
echo "|---|---|---|---|---|"
for kernel in sum prod min max scale; do
	for type in int8 int16 int32 int64 float16 bfloat16 float32 float64; do
		row $kernel $type
	done
done
for kernel in stream both; do
	row $kernel float32
done
for kernel in all mean; do
	for type in float16 bfloat16; do
		row $kernel $type
	done
done
