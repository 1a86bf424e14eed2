package device

import (
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/cuda"
)

// SumSquares returns the sum of the squares of src, in float64. It waits for what was issued before.
func (m *Memory) SumSquares(src ccl.Buf) (float64, error) {
	var sum [1]float64
	err := m.SumsOfSquares(sum[:], src)
	return sum[0], err
}

// SumsOfSquares is SumSquares of each of src, into sums, and waits once.
func (m *Memory) SumsOfSquares(sums []float64, src ...ccl.Buf) error {
	if len(sums) != len(src) {
		return fmt.Errorf("device: SumsOfSquares: %d sums of %d buffers", len(sums), len(src))
	}
	clear(sums)
	if len(src) == 0 {
		return nil
	}
	if err := m.roomForSums(len(src)); err != nil {
		return fmt.Errorf("device: SumsOfSquares: %w", err)
	}
	to, _ := m.sums.Ptr()
	for i, b := range src {
		if err := m.sumSquares(b, to+uintptr(8*i)); err != nil {
			return err
		}
	}
	if err := m.sums.GetOn(m.s, m.result); err != nil {
		return fmt.Errorf("device: SumsOfSquares: %w", err)
	}
	if err := m.s.Synchronize(); err != nil {
		return fmt.Errorf("device: SumsOfSquares: %w", err)
	}
	for i, x := range m.result.Slice()[:len(sums)] {
		if src[i].Len() > 0 {
			sums[i] = x
		}
	}
	return nil
}

// sumSquares leaves the sum of the squares of b at to.
func (m *Memory) sumSquares(b ccl.Buf, to uintptr) error {
	from, kind, n, err := one("SumSquares", b)
	if err != nil || n == 0 {
		return err
	}
	in, ok := m.parts.Ptr()
	if !ok {
		return errClosed
	}
	left := min(n, lanes)
	if err := m.launch(m.k.squares[kind], left, cuda.Pointer(in), cuda.Pointer(from), count(n)); err != nil {
		return err
	}
	for left > narrow {
		width, out := narrow, in+8*wide
		if left > wide {
			width, out = wide, in+8*lanes
		}
		if err := m.fold(out, in, left, width); err != nil {
			return err
		}
		left, in = width, out
	}
	return m.fold(to, in, left, 1)
}

func (m *Memory) fold(out, in uintptr, n, width int) error {
	return m.launch(m.k.fold, width, cuda.Pointer(out), cuda.Pointer(in), cuda.Value(uint32(n)), cuda.Value(uint32(width)))
}

// roomForSums makes room for the results of n sums.
func (m *Memory) roomForSums(n int) (err error) {
	if m.module == nil {
		return errClosed
	}
	if m.result != nil && m.sums.Len() >= n {
		return nil
	}
	if err := m.freeSums(); err != nil {
		return err
	}
	n = max(64, n)
	if m.sums, err = cuda.Alloc[float64](m.d, n); err != nil {
		return err
	}
	m.result, err = cuda.AllocHost[float64](m.d, n)
	return err
}

func (m *Memory) freeSums() error {
	var errs []error
	if m.sums != nil {
		errs = append(errs, m.sums.Free())
	}
	if m.result != nil {
		errs = append(errs, m.result.Free())
	}
	m.sums, m.result = nil, nil
	return errors.Join(errs...)
}
