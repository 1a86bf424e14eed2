//go:build (nccl || rccl) && cgo && linux

package native

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/engine"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
	"github.com/goccl/goccl/internal/op"
)

// A library that cannot register memory says from which version on it could.
func TestRegisterLacks(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		lib := *open(t, v)
		table := *lib.t
		table.CommRegister, table.CommDeregister = nil, nil
		lib.t = &table
		e := &end{lib: &lib}
		_, err := e.Register(1, 1)
		var lacks *engine.Lacks
		require.ErrorAs(t, err, &lacks)
		require.EqualError(t, err, lib.Version()+" has no ncclCommRegister; that needs "+v.title+" 2.19")
		require.ErrorIs(t, err, engine.ErrUnsupported)
	})
}

// CheckStrict refuses addresses that are not the device's, by name, where a call reads or writes them.
func TestCheckAddresses(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		leaks(t, v)
		r := world(t, v, 1)[0]
		block, err := gpu.Alloc[int8](r.device, 64)
		require.NoError(t, err)
		defer block.Free()
		m, _ := block.Ptr()
		host := new([64]byte)
		e := r.end()
		call := func(dst, src uintptr, n int) []*op.Call {
			return []*op.Call{{Head: op.Head{Record: op.Record{Kind: op.AllReduce, Type: op.Int8, Op: op.Sum, Root: -1, Count: uint64(n)}, DstAt: dst, SrcAt: src, DstN: n, SrcN: n}}}
		}
		require.NoError(t, checkAddresses(e, call(m, m, 64)))
		require.NoError(t, checkAddresses(e, call(0, 0, 0)), "nothing is read")
		require.ErrorContains(t, checkAddresses(e, call(m, addressOf(host), 64)), v.name+": src: ")
		require.ErrorContains(t, checkAddresses(e, call(addressOf(host), m, 64)), v.name+": dst: ")
	})
}
