package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/reduce"
)

func TestRun(t *testing.T) {
	level := reduce.Kernel()
	for _, name := range []string{"sum", "prod", "min", "max", "stream", "scale", "all", "mean"} {
		require.NoError(t, run([]string{level, name, "bfloat16", "2"}), name)
	}
	for _, tc := range []struct {
		args []string
		want string
	}{
		{nil, "arguments: LEVEL KERNEL TYPE COUNT"},
		{[]string{level, "sum", "float33", "1"}, `"float33" is no type`},
		{[]string{level, "sum", "none", "1"}, `"none" is no type`},
		{[]string{level, "sum", "float32", "many"}, "invalid syntax"},
		{[]string{"mmx", "sum", "float32", "1"}, `no kernels "mmx"`},
		{[]string{level, "dot", "float32", "1"}, `no "dot" of float`},
		{[]string{level, "mean", "float32", "1"}, `no "mean" of float`},
		{[]string{level, "sum", "bool", "1"}, `no "sum" of bool`},
	} {
		require.ErrorContains(t, run(tc.args), tc.want)
	}
}

func TestKernelsAreThere(t *testing.T) {
	for typ := range op.Types {
		if op.Reduces(typ, op.Avg) {
			require.NotNil(t, kernel("scale", typ), "%v", typ)
		}
	}
}
