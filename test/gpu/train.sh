#!/bin/bash
# train.sh LOGS: training on one NVIDIA GPU, with examples/gpt2, beside PyTorch. Run in the folder that `make gpu-train` has built:
# it needs python3 with torch and jax's CUDA plugin (pip install torch jax-cuda13-plugin), and neither Go nor a network. It takes
# about three minutes: $LIMIT seconds at most.
#
# GPT-2 with 124 M parameters in bfloat16, at 8 and at 16 rows, in turns with PyTorch, eager and compiled; the losses of all on the same
# parameters and tokens; then two ranks on the GPU over NCCL, beside one. All logs go to LOGS.
#   ONLY=ranks  the two ranks alone; ONLY=turns  all but these
#   REHEARSE=1  the same with a tiny model on the CPU: GOCCL_XLA_PLUGIN names the plugin, TORCH what python3 needs in its
#               PYTHONPATH (may be empty)
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
[ $# = 1 ] || { echo "usage: $0 LOGS" >&2; exit 2; }
mkdir -p "$1" && logs=$(cd "$1" && pwd) || exit 1
LIMIT=${LIMIT:-180} REHEARSE=${REHEARSE:-} failed=0 together=
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cp "$here/gpt2" "$tmp/gpt2" && chmod 755 "$tmp/gpt2" || exit 1
export GOCCL_LAUNCHER=none STEPS=20 GOTRACEBACK=all GOCCL_BOOT_TIMEOUT=40s TF_CPP_MIN_LOG_LEVEL=${TF_CPP_MIN_LOG_LEVEL:-2}

if [ -n "$REHEARSE" ]; then
	shape=2,2,64,32,256 model="-preset tiny" rowses="8 16" engine=cpu
	export PYTHONPATH=${TORCH:-} LD_LIBRARY_PATH=${TORCH:+$TORCH/stubs}
	options() { echo cpu_device_count=1; }
	fast="" variants="go-residual:-residual~bf16"
	limits="400 400" LIMIT=1200
	export STEPS=3 OMP_NUM_THREADS=1 together="-backend cpu"
else
	shape=12,12,768,1024,50304 model="-preset gpt2" rowses="8 16" engine=nccl
	site=${SITE:-$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')}
	GOCCL_XLA_PLUGIN=${GOCCL_XLA_PLUGIN:-$(ls "$site"/jax_plugins/xla_cuda1*/xla_cuda_plugin.so 2>/dev/null | tail -1)}
	[ -f "$GOCCL_XLA_PLUGIN" ] || { echo "no jax_plugins/xla_cuda13/xla_cuda_plugin.so in $site: set SITE or GOCCL_XLA_PLUGIN"; exit 1; }
	libs=$(ls -d "$site"/nvidia/*/lib 2>/dev/null | paste -sd:)
	find_lib() { find "$site/nvidia" /usr/local/cuda*/lib64 -name "$1" 2>/dev/null | head -1; }
	export GOCCL_XLA_PLUGIN LD_LIBRARY_PATH=$libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
	GOCCL_NCCL_LIB=${GOCCL_NCCL_LIB:-$(find_lib libnccl.so.2)}
	GOCCL_CUDART_LIB=${GOCCL_CUDART_LIB:-$(find_lib libcudart.so.13)}
	[ -n "$GOCCL_NCCL_LIB" ] && export GOCCL_NCCL_LIB
	[ -n "$GOCCL_CUDART_LIB" ] && export GOCCL_CUDART_LIB || unset GOCCL_CUDART_LIB
	# Where XLA finds ptxas and libdevice: a folder with nvvm/libdevice and, if possible, bin/ptxas.
	nvcc=$(command -v nvcc || ls /usr/local/cuda*/bin/nvcc 2>/dev/null | head -1)
	cuda=
	for d in ${nvcc:+"$(dirname "$(dirname "$(readlink -f "$nvcc")")")"} /usr/local/cuda /usr/local/cuda-13.0 "$site"/nvidia/cu13 "$site"/nvidia/cuda_nvcc; do
		[ -f "$d/nvvm/libdevice/libdevice.10.bc" ] && { cuda=$d; break; }
	done
	[ -n "$nvcc" ] && PATH=$PATH:$(dirname "$nvcc")
	[ -n "$cuda" ] && [ -x "$cuda/bin/ptxas" ] && PATH=$PATH:$cuda/bin
	export PATH XLA_FLAGS=${XLA_FLAGS:-${cuda:+--xla_gpu_cuda_data_dir=$cuda}}
	nccl=$(python3 -c "
import ctypes
v=ctypes.c_int(); ctypes.CDLL('$GOCCL_NCCL_LIB').ncclGetVersion(ctypes.byref(v)); print(v.value)" 2>/dev/null || echo 0)
	[ "$nccl" -ge 23003 ] && export NCCL_MULTI_RANK_GPU_ENABLE=1
	export NCCL_DEBUG=${NCCL_DEBUG:-WARN}
	options() { echo "preallocate=false,memory_fraction=$1"; }
	fast="-flags xla_gpu_enable_triton_gemm=false,xla_gpu_autotune_level=0"
	variants="go-defaults: go-residual:-residual~bf16~$(echo "$fast" | tr ' ' '~')"
	limits="66 72" together="-backend nccl -device 0"
fi
{
	[ -n "$REHEARSE" ] || nvidia-smi --query-gpu=name,driver_version,memory.total,memory.used,compute_mode --format=csv,noheader 2>&1 | head -3
	python3 -c 'import importlib.metadata as m
for p in "jax-cuda13-pjrt nvidia-nccl-cu13 nvidia-cudnn-cu13 nvidia-cublas nvidia-cuda-nvcc nvidia-nvvm torch triton".split():
    try: print(p, m.version(p), end="; ")
    except Exception: print(p, "-", end="; ")
print()'
	echo "plugin ${GOCCL_XLA_PLUGIN:-}; NCCL ${nccl:-} ${GOCCL_NCCL_LIB:-}; cudart ${GOCCL_CUDART_LIB:-}; cuda ${cuda:-}; ptxas $(command -v ptxas || echo none)"
	echo "XLA_FLAGS=${XLA_FLAGS:-}; flags of programs: $fast; $(nproc) CPUs"
} 2>&1 | tee "$logs/env.txt"

gpt="$tmp/gpt2 $model -bf16 -lr 6e-4 -log $STEPS"
windows=5
most=${rowses##* }
total=$((STEPS * (windows + 1)))
[ "${ONLY:-}" = ranks ] || $gpt -rows "$most" -steps $total -export "$tmp/same" || exit 1

set -- $limits
[ "${ONLY:-}" = ranks ] && rowses=
for rows in $rowses; do
	part=.15
	[ "$rows" -ge 16 ] && part=.2
	with="$gpt -rows $rows -steps $total -pace -options $(options $part)"
	torch="python3 -W ignore $here/torchgpt.py $shape $rows $tmp/same $most $total $STEPS 6e-4 bf16"
	programs=("go=$with $fast")
	for v in $variants; do
		[ "$rows" -ge 16 ] && [ "$v" = go-defaults: ] && continue # memory
		extra=${v#*:}
		programs+=("${v%%:*}=$with ${extra//\~/ }")
	done
	programs+=("torch-eager=$torch pace" "torch-compile=$torch compile pace")
	python3 "$here/turns.py" "$logs" "$1" $windows "$rows" "${programs[@]}" || failed=1
	shift
done

[ "${ONLY:-}" = turns ] && { echo "$SECONDS s; logs in $logs"; exit $failed; }

# Two ranks on the device, 8 rows a step; one rank before, whose losses they should have.
short="$gpt -lr 1e-4 -rows 8 -steps 12 -log 3 -options $(options .3) $fast"
patience=40
[ -n "$REHEARSE" ] && patience=200
one() {
	timeout "$patience" $short >"$logs/ranks-1.log" 2>&1 || { tail -5 "$logs/ranks-1.log" | cut -c1-300; return 1; }
}
# two NAME FLAGS..
two() {
	local name=$1 r pids="" bad="" store
	shift
	[ "$SECONDS" -gt $((LIMIT - 10)) ] && { echo "NOT RUN: $name: $SECONDS s"; failed=1; return 0; }
	store=$(mktemp -d "$tmp/store-XXXXXX")
	secret=$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')
	for r in 0 1; do
		(
			[ "$engine" = nccl ] && [ "${nccl:-0}" -lt 23003 ] && export NCCL_HOSTID=rank$r
			unset GOCCL_LAUNCHER
			GOCCL_RANK=$r GOCCL_SIZE=2 GOCCL_STORE=$store GOCCL_SECRET=$secret exec timeout -s QUIT -k 5 "$patience" $short $together "$@"
		) >"$logs/$name.$r.log" 2>&1 </dev/null &
		pids="$pids $!"
	done
	for r in $pids; do wait "$r" || bad="$bad $?"; done
	[ -z "$bad" ] && return 0
	failed=1
	echo "FAILED: $name: exit$bad"
	for r in 0 1; do echo "  -- rank $r:"; grep -v '^program' "$logs/$name.$r.log" | sed '/^goroutine /,$d' | tail -8 | cut -c1-300 | sed 's/^/    /'; done
	return 1
}
one &
first=$!
two ranks-2-zero-0 || two ranks-2-zero-0-wait -wait
wait $first || failed=1
for stage in 1 3; do two ranks-2-zero-$stage -zero $stage; done
echo
echo "two ranks on one device, $engine, 8 rows a step: losses beside one rank's"
for log in ranks-1.log ranks-2-zero-{0,1,3}.0.log; do
	printf '  %-16s %s\n' "${log%%.*}" "$(grep '^step=' "$logs/$log" 2>/dev/null | sed 's/^step=\([0-9]*\) loss=\([^ ]*\).*/\1:\2/' | tr '\n' ' ')"
done
python3 - "$logs" <<'PY' || failed=1
import re, sys
# One rank is up to 8e-4 away from itself on an H100, in two runs; ZeRO's parameters and gradients are bfloat16.
bounds = {0: 2e-3, 1: 4e-3, 3: 4e-3}
def losses(name):
    try:
        return {int(m[1]): float(m[2]) for m in re.finditer(r"^step=(\d+) loss=(\S+)", open(f"{sys.argv[1]}/{name}").read(), re.M)}
    except OSError:
        return {}
one, bad = losses("ranks-1.log"), False
for stage, bound in bounds.items():
    name = f"ranks-2-zero-{stage}.0.log"
    two = losses(name)
    if not one or two.keys() != one.keys():
        print(f"  {name}: not all losses are there")
        bad = True
        continue
    worst = max(abs(two[s] - one[s]) for s in one)
    print(f"  {name}: at most {worst:.6f} away from one rank's" + ("" if worst < bound else ": TOO FAR"))
    bad |= worst >= bound
sys.exit(bad)
PY
echo "$SECONDS s; logs in $logs"
exit $failed
