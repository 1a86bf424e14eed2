#!/bin/bash
# Fetches what oneCCL's tests run on, pinned by version, into the cache, and prints the directory. What is there
# already is used.
#   fetch.sh cpu 2021.17.2    oneCCL and its CPU plugin: needs nothing of Intel's at run time
#   fetch.sh cpu 2022.2.0
#   fetch.sh sycl             SYCL with its CPU device, and oneCCL 2021.17.2 for SYCL queues
# Needs g++, gcc, python3 with pip, unzip; and Debian's libfabric1 and libhwloc15.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${GOCCL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/goccl}/oneccl
platform=manylinux_2_28_x86_64
mkdir -p "$cache"

# wheels DIR NAME==VERSION..: the wheels alone, without what they depend on.
wheels() {
	local dir=$1
	shift
	for attempt in 1 2 3; do
		timeout 300 python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: \
			--platform "$platform" -d "$dir" "$@" >&2 && return
		echo "fetch.sh: attempt $attempt failed" >&2
	done
	return 1
}

# only WHEEL PATTERN.. -d DIR: files of a wheel, without their paths.
only() { unzip -qoj "$@"; }

library() { # library NAME: a library of the system, by its whole name
	local d
	for d in /usr/lib/x86_64-linux-gnu /usr/lib64 /usr/lib; do
		[ -e "$d/$1" ] && { echo "$d/$1"; return; }
	done
	echo "fetch.sh: no $1 here (Debian: apt-get install libhwloc15 libfabric1)" >&2
	return 1
}

cpu() { # cpu VERSION DIR
	local w=$2/wheels
	mkdir -p "$2/ccl/cpu/lib" "$2/include"
	wheels "$w" "oneccl==$1" "oneccl-devel==$1"
	only "$w"/oneccl-*.whl '*/lib/libccl.so.2' '*/lib/libccl_legacy_cpu.so' -d "$2"
	only "$w"/oneccl_devel-*.whl '*/lib/ccl/cpu/lib/libccl.a' -d "$w"
	unzip -qo "$w"/oneccl_devel-*.whl '*/include/*' -d "$w"
	mv "$w"/oneccl_devel-*/data/include/* "$2/include/"
	gcc -O2 -fPIC -c "$here/cpu.c" -o "$w/cpu.o"
	g++ -shared -o "$2/ccl/cpu/lib/libccl.so.1" -Wl,-soname,libccl.so.1 \
		-Wl,--whole-archive "$w/libccl.a" -Wl,--no-whole-archive "$w/cpu.o" "$(library libhwloc.so.15)" -ldl -lpthread -lrt
	rm -rf "$w"
}

sycl() { # sycl VERSION DIR: VERSION is oneCCL's
	local w=$2/wheels s=2025.3.3
	mkdir -p "$2/lib/ccl/kernels"
	wheels "$w" "oneccl==$1" intel-sycl-rt==$s intel-opencl-rt==$s intel-cmplr-lib-rt==$s intel-cmplr-lib-ur==$s \
		tbb==2022.3.1 tcmlib==1.6.0 umf==1.0.3
	local whl
	for whl in "$w"/*.whl; do
		# Of each library one name: wheels have no links, but up to three copies. 11: no file matches.
		unzip -qo "$whl" '*/data/lib/*' '*/data/include/*' -d "$w" \
			-x '*/libsycl-preview*' '*/icx-lto.so' '*/libonnxruntime*' '*/lib/clang/*' '*/libcommon_clang.so' '*/libintelocl.so.*' '*_debug*' \
			'*/libsycl.so' '*/libsycl.so.8.0.0' '*/libsycl-jit.so' '*/libsycl-*san*' '*.so.0.12.0' \
			'*/libccl.so' '*/libccl.so.1.0' '*/libccl.so.2.0' '*/libccl_openmp*' >/dev/null 2>&1 || [ $? = 11 ]
		rm "$whl"
		cp -rl "$w"/*.data/data/. "$2/"
		rm -rf "$w"/*.data
	done
	rm -rf "$w"
}

kind=${1:-} version=${2:-2021.17.2}
case $kind in
cpu | sycl) ;;
*) sed -n '2,7s/^# \?//p' "$0" >&2; exit 2 ;;
esac
dir=$cache/$kind-$version
[ -d "$dir" ] || {
	work=$(mktemp -d "$cache/.fetch.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	"$kind" "$version" "$work/new"
	chmod -R a+rX "$work/new"
	mv -T "$work/new" "$dir" 2>/dev/null || [ -d "$dir" ] # another may have been quicker
}
echo "$dir"
