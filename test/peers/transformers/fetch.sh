#!/bin/bash
# fetch.sh: transformers and peft in the cache, beside the PyTorch of test/peers/torch/fetch.sh; prints both directories, as
# a PYTHONPATH. Needs what that script needs.
set -eu
torch=$("$(dirname "$0")/../torch/fetch.sh")
cache=${GOCCL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/goccl}
dir=$cache/transformers-5.24.0
if [ ! -e "$dir/ready" ]; then
	mkdir -p "$cache"
	tmp=$(mktemp -d "$cache/.fetch-transformers-XXXXXX")
	trap 'rm -rf "$tmp"' EXIT
	PIP_BREAK_SYSTEM_PACKAGES=1 PIP_ROOT_USER_ACTION=ignore python3 -m pip install -q --disable-pip-version-check --no-compile \
		--only-binary :all: --no-deps --target "$tmp/site" transformers==5.24.0 peft==0.21.2 accelerate==1.15.0 tokenizers==0.23.3 \
		huggingface_hub==2.4.0 regex==2026.11.19 pyyaml==6.0.4 tqdm==4.70.1 packaging==26.4 psutil==7.2.2 requests==2.34.2 \
		httpx2==2.16.2 httpcore2==2.16.2 truststore==0.10.5 anyio==4.16.0 idna==3.20 h11==0.16.0 certifi==2026.10.19.post1 \
		typer==0.29.2 click==8.5.1 >&2
	LD_LIBRARY_PATH=$torch/stubs PYTHONPATH=$tmp/site:$torch python3 -W ignore -c 'import peft; from transformers import LlamaForCausalLM' >&2
	touch "$tmp/site/ready"
	mv -T "$tmp/site" "$dir" 2>/dev/null || [ -e "$dir/ready" ] # another process may have been faster
fi
echo "$dir:$torch"
