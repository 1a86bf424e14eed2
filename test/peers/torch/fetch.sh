#!/bin/bash
# fetch.sh [VERSION]: PyTorch in the cache, for the CPU alone; prints its directory. The wheel that pip finds is often the one for
# CUDA. Its libraries are not needed to compute on the CPU, only to be found: where they are missing, ones of empty functions
# stand in their places, under stubs/. Needs python3, pip, cc and readelf.
set -eu
version=${1:-2.15.0}
cache=${GOCCL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/goccl}
dir=$cache/torch-$version
if [ ! -e "$dir/ready" ]; then
	for need in python3 cc readelf; do
		command -v $need >/dev/null || { echo "fetch.sh: no $need (Debian: apt-get install python3-pip gcc libc6-dev binutils)" >&2; exit 1; }
	done
	mkdir -p "$cache"
	tmp=$(mktemp -d "$cache/.fetch-torch-XXXXXX")
	trap 'rm -rf "$tmp"' EXIT
	export PIP_BREAK_SYSTEM_PACKAGES=1 PIP_ROOT_USER_ACTION=ignore
	install() { python3 -m pip install -q --disable-pip-version-check --no-compile --only-binary :all: --target "$tmp/site" "$@" >&2; }
	install --no-deps torch==$version
	install --upgrade sympy networkx jinja2 fsspec filelock 'typing-extensions>=4.13' setuptools numpy safetensors==0.8.0
	mkdir "$tmp/site/stubs"
	lib=$tmp/site/torch/lib
	# Of each library of CUDA's that is needed: its name, and the version of its symbols, if they have one.
	readelf -dVW "$lib"/*.so* | awk '
		/\(NEEDED\)/ { gsub(/.*\[|\].*/, ""); need[$0] }
		/ File: / { sub(/.* File: /, ""); file = $1 }
		/ Name: .* Flags: / { sub(/.* Name: /, ""); version[file] = $1 }
		END { for (f in need) if (f ~ /^lib(cu|nv|nccl)/) print f, version[f] }' >"$tmp/needed"
	readelf --dyn-syms -W "$lib"/*.so* >"$tmp/symbols"
	# 100 is what CUDA's functions return where there is no device; those that say what a code means return text.
	while read -r name version; do
		[ ! -e "$lib/$name" ] || continue
		echo "$version { global: *; };" >"$tmp/version"
		of='(cu|nv|nccl)[A-Za-z0-9_]*'
		[ -z "$version" ] || of="[A-Za-z0-9_]*@$version"
		grep -oE " UND $of( |\$)" "$tmp/symbols" | sort -u |
			sed -E 's/ UND ([A-Za-z]+Get(Error|Status)(String|Name)|ncclGetLastError)[^A-Za-z0-9_].*/const char *\1(void) { return "a stub"; }/
				s/ UND ([A-Za-z0-9_]*).*/long \1(void) { return 100; }/' |
			cc -w -shared -fPIC -fno-builtin -o "$tmp/site/stubs/$name" -Wl,-soname,"$name" ${version:+-Wl,--version-script,"$tmp/version"} -x c -
	done <"$tmp/needed"
	LD_LIBRARY_PATH=$tmp/site/stubs PYTHONPATH=$tmp/site python3 -W ignore -c 'import torch, safetensors.torch; assert torch.distributed.is_gloo_available()' >&2
	touch "$tmp/site/ready"
	mv -T "$tmp/site" "$dir" 2>/dev/null || [ -e "$dir/ready" ] # another process may have been faster
fi
echo "$dir"
