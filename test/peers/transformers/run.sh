#!/bin/bash
# run.sh: the models of xla/nn/models beside those of transformers: small random ones, their logits, losses of 12 steps and tokens that
# they generate, with a cache and without; and what is saved is read back by transformers. Arguments: kinds of models.py.
# SHORT=-short leaves half of the kinds to xla/nn/models alone.
set -euo pipefail
cd "$(dirname "$0")/../../.."
here=test/peers/transformers
path=$($here/fetch.sh)
test/vendor/pjrt/fetch.sh cpu-0.11.2 >/dev/null
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
py() { LD_LIBRARY_PATH=${path#*:}/stubs PYTHONPATH=$path PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 HF_HUB_DISABLE_PROGRESS_BARS=1 \
	TRANSFORMERS_VERBOSITY=error python3 -W ignore "$@"; }
py $here/models.py make "$dir" "$@" 2>"$dir/said" || { cat "$dir/said"; exit 1; }
GOCCL_TEST_MODELS=$dir CGO_ENABLED=1 go test -count 1 -tags xla -timeout 20m -run '^TestAsTransformers$' ./xla/nn/models
# Trained by package train/fit in all layouts, and LoRA beside peft; an argument leaves that out.
if [ $# = 0 ]; then
	(cd $here && py lora.py make "$dir") 2>"$dir/said" || { cat "$dir/said"; exit 1; }
	GOCCL_TEST_MODELS=$dir CGO_ENABLED=1 go test -count 1 -tags xla -timeout 50m ${SHORT:+"$SHORT"} -run '^Test(Transformers|PEFT)$' ./train/fit
	(cd $here && py lora.py check "$dir") 2>"$dir/said" || { cat "$dir/said"; exit 1; }
fi
py $here/models.py check "$dir" "$@" 2>"$dir/said" || { cat "$dir/said"; exit 1; }
