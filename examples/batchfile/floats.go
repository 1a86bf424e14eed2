package main

import (
	"encoding/binary"
	"io"
	"math"
)

// readFloats is ReadAt of numbers as this machine has them in memory, which is how MPI-IO has them in a file.
func readFloats(r io.ReaderAt, buf []float32, at int64) error {
	b := make([]byte, 4*len(buf))
	if _, err := r.ReadAt(b, at); err != nil {
		return err
	}
	for i := range buf {
		buf[i] = math.Float32frombits(binary.NativeEndian.Uint32(b[4*i:]))
	}
	return nil
}
