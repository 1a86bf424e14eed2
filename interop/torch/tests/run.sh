#!/bin/bash
# run.sh [RANKS ...]: installs the wheels of wheel.sh with pip in a folder of its own, and runs PyTorch's tests with so many ranks, 2 without
# arguments. run.sh bench [ARGUMENTS] runs bench.py there. Needs what test/peers/torch/fetch.sh needs, g++ and Go.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
missing() {
	echo "torch-tests: NOT RUN: $1"
	[ "${GOCCL_REQUIRE:-}" != all ]
	exit
}
command -v g++ >/dev/null || missing "no g++ here (Debian: apt-get install g++)"
site=$("$root/test/peers/torch/fetch.sh") || missing "no PyTorch"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$here/../wheel.sh" "$dir/dist" 2.15.0 >"$dir/log" || { cat "$dir/log" && exit 1; }
export PYTHONPATH=$dir/site:$site LD_LIBRARY_PATH=$site/stubs OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore
export PIP_BREAK_SYSTEM_PACKAGES=1 PIP_ROOT_USER_ACTION=ignore
install() { python3 -m pip install -q --disable-pip-version-check --no-deps --no-compile --target "$dir/site" "$@" >&2; }
install --no-index "$dir"/dist/*.whl
if [ "${1:-}" = bench ]; then
	shift
	cd "$dir"
	python3 "$here/bench.py" "$@"
	exit
fi
install expecttest==0.3.0 || missing "no expecttest, which PyTorch's tests import"
cd "$dir" # torch_goccl is what pip has installed
python3 "$here/restart.py" 2
python3 "$here/spares.py"
if [ $# -gt 0 ]; then # in the night: they take minutes
	python3 "$here/restart.py" 18
	install torchft==0.2.0 parameterized==0.9.0 || missing "no torchft"
	python3 -m pip install -q --disable-pip-version-check --no-compile --target "$dir/site" opentelemetry-exporter-otlp-proto-http==1.39.0 'setuptools<81' >&2
	timeout 900 python3 "$here/replicas.py"
fi
for ranks in "${@:-2}"; do
	python3 "$here/own.py" "$ranks"
	python3 "$here/layouts.py" "$ranks"
	python3 "$here/suite.py" -ranks "$ranks"
	python3 "$here/suite.py" -ranks "$ranks" -mpi
done
