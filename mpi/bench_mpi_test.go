//go:build mpi && cgo

package mpi_test

import (
	"context"
	"testing"

	"github.com/goccl/goccl/mpi"
)

func BenchmarkAllReduceSelf(b *testing.B) {
	ctx, c := context.Background(), mpi.Self()
	dst, src := make([]float64, 1), make([]float64, 1)
	b.ReportAllocs()
	for b.Loop() {
		if err := mpi.AllReduce(ctx, c, dst, src, mpi.Sum); err != nil {
			b.Fatal(err)
		}
	}
}
