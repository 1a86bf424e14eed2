package empi_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/emer/empi/mpi"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/interop/empi"
)

var _ empi.Comm = (*mpi.Comm)(nil)

// comm is a rank's communicator, over what goroutines of a process exchange. With an error its calls fail.
type comm struct {
	*boot.Boot
	err error
}

func (c *comm) AllGatherInt(dest, orig []int) error {
	blocks, err := c.AllGather(context.Background(), binary.LittleEndian.AppendUint64(nil, uint64(orig[0])))
	for r, block := range blocks {
		dest[r] = int(binary.LittleEndian.Uint64(block))
	}
	return errors.Join(err, c.err)
}

func (c *comm) AllGatherU8(dest, orig []uint8) error {
	_ = orig[0] // as empi
	blocks, err := c.AllGather(context.Background(), orig)
	copy(dest, bytes.Join(blocks, nil))
	return errors.Join(err, c.err)
}

func (c *comm) Barrier() error {
	_, err := c.AllGather(context.Background(), []byte{0})
	return errors.Join(err, c.err)
}

// alone is a rank that waits for others which do not come.
type alone struct {
	*comm
	waits func()
	end   <-chan struct{}
}

func (c *alone) AllGatherInt(dest, orig []int) error {
	c.waits()
	<-c.end
	return nil
}

// each runs f as each rank.
func each(t *testing.T, n int, f func(c *comm) error) {
	t.Helper()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for r, b := range boot.Local(n) {
		wg.Go(func() { errs[r] = f(&comm{Boot: b}) })
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
}

func TestAllGather(t *testing.T) {
	for _, tc := range []struct {
		name   string
		blocks []string
	}{
		{"one rank", []string{"alone"}},
		{"of one size", []string{"ab", "cd", "ef"}},
		{"of several", []string{"", "abcdef", "g"}},
		{"empty", []string{"", ""}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			each(t, len(tc.blocks), func(c *comm) error {
				got, err := empi.Bootstrap(c).AllGather(t.Context(), []byte(tc.blocks[c.Rank()]))
				for r, block := range got {
					if string(block) != tc.blocks[r] {
						return errors.New("rank has " + string(block))
					}
				}
				return err
			})
		})
	}
}

func TestNewComm(t *testing.T) {
	each(t, 3, func(rank *comm) error {
		c, err := ccl.NewComm(t.Context(), empi.Bootstrap(rank), nil)
		if err != nil {
			return err
		}
		x := []float32{1, float32(c.Rank())}
		if err := ccl.AllReduce(t.Context(), c, x, x, ccl.Sum); err != nil {
			return err
		}
		if !slices.Equal(x, []float32{3, 3}) {
			return errors.New("wrong sum")
		}
		return c.Close()
	})
}

func TestErrors(t *testing.T) {
	failed := errors.New("out of order")
	each(t, 2, func(c *comm) error {
		c.err = failed
		_, err := empi.Bootstrap(c).AllGather(t.Context(), nil)
		if !errors.Is(err, failed) || err.Error() != "empi: AllGather: out of order" {
			return fmt.Errorf("rank %d: %v", c.Rank(), err)
		}
		return nil
	})

	ctx, cancel := context.WithCancel(t.Context())
	b := empi.Bootstrap(&alone{&comm{Boot: boot.Local(2)[0]}, cancel, t.Context().Done()})
	_, err := b.AllGather(ctx, []byte("anybody?"))
	require.ErrorIs(t, err, context.Canceled)
	_, err = b.AllGather(ctx, nil)
	require.ErrorIs(t, err, context.Canceled)
	_, err = b.AllGather(t.Context(), nil)
	require.EqualError(t, err, "empi: AllGather: an earlier exchange over this communicator was not waited for, and it can have no other")
}

// idle does nothing, as empi's communicator without the tag mpi.
type idle struct{ size int }

func (c idle) Rank() int                           { return 0 }
func (c idle) Size() int                           { return c.size }
func (c idle) AllGatherInt(dest, orig []int) error { return nil }
func (c idle) AllGatherU8(dest, orig []byte) error { return nil }
func (c idle) Barrier() error                      { return nil }

func TestIdle(t *testing.T) {
	c, err := ccl.NewComm(t.Context(), empi.Bootstrap(idle{1}), nil)
	require.NoError(t, err)
	require.Equal(t, 1, c.Size())
	require.NoError(t, c.Close())
	_, err = empi.Bootstrap(idle{2}).AllGather(t.Context(), []byte("mine"))
	require.EqualError(t, err, "empi: AllGather: the lengths of the ranks' blocks came as [0 0], and rank 0 has 4 bytes")
}

// broken is a rank whose MPI says of the lengths of others what makes no sense.
type broken struct {
	idle
	length int
}

func (c broken) AllGatherInt(dest, orig []int) error {
	dest[0], dest[1] = orig[0], c.length
	return nil
}

// A length that no rank has is an error, whatever memory it would take.
func TestLengths(t *testing.T) {
	for _, n := range []int{-1, boot.MaxValue + 1, 1 << 40, math.MaxInt} {
		_, err := empi.Bootstrap(broken{idle{2}, n}).AllGather(t.Context(), []byte("mine"))
		require.ErrorContains(t, err, fmt.Sprintf("the lengths of the ranks' blocks came as [4 %d]", n))
	}
}
