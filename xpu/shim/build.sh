#!/bin/bash
# Builds libgocclxpu.so, the shim over SYCL that package xpu opens at run time (GOCCL_XPU_LIB).
#   build.sh DIR      into DIR. SYCL is where SYCL_ROOT says, or CMPLR_ROOT (Intel's setvars.sh sets it), or in the
#                     compiler's own paths. CXX names the compiler; any will do, since there is no device code.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd) out=${1:?usage: build.sh DIR} root=${SYCL_ROOT:-${CMPLR_ROOT:-}}
flags=() link=()
if [ -n "$root" ]; then
	flags=(-isystem "$root/include")
	library=$(find "$root/lib" -maxdepth 1 -name 'libsycl.so.[0-9]*' | grep -E '/libsycl\.so\.[0-9]+$' | sort -V | tail -1)
	[ -n "$library" ] || { echo "build.sh: no libsycl.so in $root/lib: is SYCL_ROOT right?" >&2; exit 1; }
	link=("$library" "-Wl,-rpath,$root/lib")
else
	link=(-lsycl)
fi
mkdir -p "$out"
new=$(mktemp "$out/.shim.XXXXXX")
trap 'rm -f "$new"' EXIT
"${CXX:-c++}" -std=c++17 -O2 -Wall -fPIC -fvisibility=hidden -shared "${flags[@]}" -o "$new" "$here/shim.cpp" "${link[@]}"
chmod 755 "$new"
mv "$new" "$out/libgocclxpu.so"
echo "$out/libgocclxpu.so"
