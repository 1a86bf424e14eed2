#!/bin/bash
# run.sh: what Hugging Face's libraries make of texts and conversations, and train/data/bpe, chat and megatron beside that.
# TEXTS: lines of mixed Unicode (100,000).
set -eu
cd "$(dirname "$0")/../.."
here=$PWD/test/text
PYTHONPATH=$("$here/fetch.sh")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export PYTHONPATH PYTHONDONTWRITEBYTECODE=1 RAYON_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1 TRANSFORMERS_VERBOSITY=error
for script in train.py chat.py indexed.py; do
	python3 -W ignore "$here/$script" "$dir" "${TEXTS:-100000}"
done
export BPE_TEST_DIR=$dir CHAT_TEST_DIR=$dir MEGATRON_TEST_DIR=$dir
go test -count 1 -v -run '^Test(AsHuggingFace|AsTransformers|Python)$' ./train/data/bpe ./train/data/chat ./train/data/megatron
