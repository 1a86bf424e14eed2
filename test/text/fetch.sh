#!/bin/bash
# fetch.sh: Hugging Face's tokenizers and transformers, without PyTorch, and the chat templates of trl, in the cache; prints
# their directory, as a PYTHONPATH. Needs python3 and pip.
set -eu
cache=${GOCCL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/goccl}
dir=$cache/text-1
if [ ! -e "$dir/ready" ]; then
	command -v python3 >/dev/null || { echo "fetch.sh: no python3 (Debian: apt-get install python3-pip)" >&2; exit 1; }
	mkdir -p "$cache"
	tmp=$(mktemp -d "$cache/.fetch-text-XXXXXX")
	trap 'rm -rf "$tmp"' EXIT
	PIP_BREAK_SYSTEM_PACKAGES=1 PIP_ROOT_USER_ACTION=ignore python3 -m pip install -q --disable-pip-version-check --no-compile \
		--only-binary :all: --no-deps --target "$tmp/site" tokenizers==0.23.3 transformers==5.24.0 trl==1.16.0 jinja2==3.1.6 \
		markupsafe==3.0.4 huggingface_hub==2.4.0 regex==2026.11.19 requests==2.34.2 numpy==2.4.6 safetensors==0.8.0 \
		pyyaml==6.0.4 tqdm==4.70.1 packaging==26.4 psutil==7.2.2 filelock==4.3.1 fsspec==2026.9.0 typer==0.29.2 click==8.5.1 \
		typing_extensions==4.16.0 httpx2==2.16.2 httpcore2==2.16.2 truststore==0.10.5 anyio==4.16.0 idna==3.20 h11==0.16.0 \
		hf_xet==1.8.0 certifi==2026.10.19.post1 >&2
	PYTHONPATH=$tmp/site python3 -W ignore -c 'import tokenizers, transformers.utils.chat_template_utils' >&2
	touch "$tmp/site/ready"
	mv -T "$tmp/site" "$dir" 2>/dev/null || [ -e "$dir/ready" ] # another process may have been faster
fi
echo "$dir"
