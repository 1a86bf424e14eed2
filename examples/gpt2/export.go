package main

import (
	"bufio"
	"encoding/binary"
	"errors"

	"github.com/goccl/goccl/internal/files"
)

// export writes the initial parameters, float32, and the tokens of all steps, int32, row after row:
// what another program needs to train the same.
func export(c *config, rows *source) error {
	f, err := files.Create(c.export)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	for i := range c.params() {
		if err := binary.Write(w, binary.LittleEndian, initial(c, i)); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	for step := 1; step <= c.steps; step++ {
		var list []int32
		for r := range c.rows {
			list = rows.row(list, step, r)
		}
		if err := binary.Write(w, binary.LittleEndian, list); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return errors.Join(w.Flush(), f.Close())
}
