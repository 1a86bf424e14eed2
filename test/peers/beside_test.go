package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// What runs beside a peer is started, and ended; a program that is not there is an error.
func TestDisturb(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	b := &builder{self: self}
	p := peer{name: "p", command: func(b *builder, _ int) []string { return []string{b.self, "-test.run", "^$"} }}
	for _, beside := range []string{"", besideJob} {
		end, err := b.disturb(p, &testCase{beside: beside, ranks: 2})
		require.NoError(t, err, beside)
		end()
	}
	_, err = (&builder{self: t.TempDir() + "/none"}).disturb(p, &testCase{beside: besideLoops})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Error(t, loop([]string{"first"}))
}
