#!/bin/sh
# build.sh FILE [FLAG..]: compiles the fake GPU libraries into FILE, libgocclfake.so, with ${CC:-cc}.
set -eu
out=$1
shift
cd "$(dirname "$0")"
exec "${CC:-cc}" -std=gnu11 -O1 -g -Wall -Wextra -Werror -ffp-contract=off -fPIC -shared -Wl,-soname,libgocclfake.so -Wl,-z,defs -Wl,-Bsymbolic \
	"$@" -o "$out" lib/*.c -lpthread -ldl -lm
