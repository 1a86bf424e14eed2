#!/bin/bash
# wheel.sh FOLDER VERSION ...: what wheel.sh has built in FOLDER, in a clean virtual environment for each version of torch: without Go and
# without a compiler it runs; with a compiler, an extension that the wheel has not is built once; the source distributions build.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
dist=$(cd "$1" && pwd)
shift
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() {
	echo "wheel.sh: $*" >&2
	exit 1
}
cat >"$tmp/three.py" <<'END'
import torch, torch.distributed as dist
import torch_goccl
dist.init_process_group("goccl")
x = torch.ones(3)
dist.all_reduce(x)
assert x.tolist() == [3.0] * 3, x
dist.destroy_process_group()
END
cat >"$tmp/imports.py" <<'END'
import time
import torch, torch.distributed
began = time.process_time()
import torch_goccl
took = time.process_time() - began
print(f"import torch_goccl: {took:.3f} s of processor after torch")
assert took < 0.2
END
for version in "$@"; do
	site=$("$root/test/peers/torch/fetch.sh" "$version")
	venv=$tmp/venv-$version
	python3 -m venv "$venv"
	echo "$site" >"$venv/lib/python3.$("$venv/bin/python" -c 'import sys; print(sys.version_info[1])')/site-packages/torch.pth"
	clean() { env -i HOME="$tmp" PATH="$venv/bin:$path" LD_LIBRARY_PATH="$site/stubs" OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore PIP_DISABLE_PIP_VERSION_CHECK=1 "$@"; }
	path=/nothing
	clean pip install -q --no-index --no-deps "$dist"/*.whl
	echo "torch $version, without Go and compiler:"
	clean python -m torch_goccl.doctor
	clean python "$tmp/imports.py"
	clean python -m torch.distributed.run --standalone --nproc-per-node 3 "$tmp/three.py" 2>"$tmp/err" || fail "$(cat "$tmp/err")"
done
rm "$venv"/lib/python3.*/site-packages/torch_goccl/_C_*.so
! clean python -c 'import torch_goccl' 2>"$tmp/err" || fail "it is imported without an extension"
grep -q "there is no C++ compiler to build one with: install g++" "$tmp/err" || fail "$(cat "$tmp/err")"
path=/usr/bin:/bin
clean python -c 'import torch_goccl' 2>"$tmp/err" || fail "$(cat "$tmp/err")"
grep -q "building its extension for torch $version" "$tmp/err" || fail "it does not say that it builds"
clean python -c 'import torch_goccl' 2>"$tmp/err"
[ ! -s "$tmp/err" ] || fail "it is built again: $(cat "$tmp/err")"
clean pip uninstall -q -y torch_goccl libgoccl setuptools # there is a newer one beside torch
go=$(dirname "$(command -v go)")
path=$go:$path clean pip install -q --no-index --no-deps --no-build-isolation "$dist"/libgoccl-*.tar.gz
clean pip install -q --no-index --no-deps --no-build-isolation "$dist"/torch_goccl-*.tar.gz
path=/nothing
clean python -m torch.distributed.run --standalone --nproc-per-node 3 "$tmp/three.py" 2>"$tmp/err" || fail "from source: $(cat "$tmp/err")"
for wheel in "$dist"/*.whl; do
	unzip -l "$wheel" | grep -q dist-info/licenses/LICENSE || fail "$wheel has no licence"
done
echo "wheel.sh: wheels and source distributions are good, with torch $*"
