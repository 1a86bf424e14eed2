package ccl

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/cpu"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/internal/environ"
)

// Split partitions c: the ranks with the same color form a new Comm, ordered by key and then by old
// rank, as with MPI_Comm_split. All ranks of c must call it. A rank with a negative color gets a
// nil Comm, whose Rank is -1 and Size 0, and which refuses every call. The new Comm has c's
// Options. It is to be closed like c: closing c does not close it, and a process that ends with any
// Comm open counts as lost on all Comms that it has not closed.
func (c *Comm) Split(ctx context.Context, color, key int) (*Comm, error) {
	return split(ctx, c, color, key, nil)
}

// SplitWith is [Comm.Split] with other Options: set changes those of c into those of the new Comm,
// such as its Name, a shorter Timeout, or RankOrder for one dimension of a mesh. Backend,
// Device, PeerTimeout and Wire belong to the job and stay. The ranks of one color must set the same
// Timeout, Check, RankOrder, Staged and Hints; OnCall, OnFailure, Log and Name may differ. If any rank sets
// what cannot be, all ranks of c get the same error, which names that rank, and c goes on.
// Ranks of c that call Split instead have made another call.
func (c *Comm) SplitWith(ctx context.Context, color, key int, set func(*Options)) (*Comm, error) {
	if set == nil {
		set = func(*Options) {}
	}
	return split(ctx, c, color, key, set)
}

// split is Split, or SplitWith if there is a set.
func split(ctx context.Context, c *Comm, color, key int, set func(*Options)) (*Comm, error) {
	opt, wrong := childOptions(c, set)
	var child *Comm
	err := makeOwn(ctx, c, call.Split, func(k *call.Call) (f *call.Fault) {
		if set != nil {
			if f = agreeOn(ctx, c.eng, k, color, &opt.Options, wrong); f != nil {
				return f
			}
		}
		child, f = newComm(opt, c.tab, c.host, cmp.Or(opt.Name, fmt.Sprintf("%s/%d", c.Name(), color)),
			func(eo plane.Options) (*cpu.Comm, *call.Fault) {
				return cpu.Split(ctx, c.eng, k, color, key, eo)
			}, func(child *cpu.Comm) (*library, *call.Fault) {
				return splitLibrary(ctx, c, child, &opt.Options)
			})
		return f
	})
	if e, ok := err.(*Error); ok && set != nil && e.Mine == nil { // c goes on
		e.Op = "SplitWith"
	}
	return child, err
}

// childOptions are c's as set changes them, if it is not nil, or what is wrong with them.
func childOptions(c *Comm, set func(*Options)) (settings, error) {
	if c.isNil() {
		return settings{}, nil
	}
	o := c.opt.ofPart("")
	if set == nil {
		return o, nil
	}
	if o.Device != nil { // set may write through it
		device := *o.Device
		o.Device = &device
	}
	set(&o.Options)
	fixed := func(name string) (settings, error) {
		return o, fmt.Errorf("%s belongs to the whole job and cannot differ in a part of it", "Options."+name)
	}
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout) // as NewComm reads it
	o.PeerTimeout = cmp.Or(o.PeerTimeout, defaultPeerTimeout)
	o.Log = cmp.Or(o.Log, defaultLog(environ.Log.Get()))
	o.Wire = cmp.Or(o.Wire, c.opt.Wire)
	switch {
	case o.Backend != c.opt.Backend:
		return fixed("Backend")
	case (o.Device == nil) != (c.opt.Device == nil) || o.Device != nil && *o.Device != *c.opt.Device:
		return fixed("Device")
	case o.Order != c.opt.Order:
		return fixed("Order")
	case o.PeerTimeout != c.opt.PeerTimeout:
		return fixed("PeerTimeout")
	case o.Wire != c.opt.Wire:
		return fixed("Wire")
	case o.Spares != c.opt.Spares:
		return fixed("Spares")
	case o.Check > CheckOff:
		return o, errCheck(o.Check)
	case o.RankOrder && !c.lib.isCPU() && c.lib.onHost(o.Staged):
		return o, fmt.Errorf("RankOrder is only for the CPU engine, but calls on host memory go through %s here",
			c.lib.backend.Name)
	}
	if err := o.Hints.check(); err != nil {
		return o, fmt.Errorf("Options.Hints: %w", err)
	}
	return o, o.Hints.takes(c.lib.backend.Name, c.lib.loaded)
}

const (
	splitWords  = 7   // of 8 bytes, that each rank tells all others
	refusedText = 256 // bytes of what is wrong on a rank
)

// agreeOn compares the options of a new Comm among the ranks of each color. wrong is what is wrong
// with this rank's. All ranks of eng get the same verdict.
func agreeOn(ctx context.Context, eng *cpu.Comm, k *call.Call, color int, o *Options, wrong error) *call.Fault {
	n, mine := eng.Size(), make([]byte, 8*splitWords)
	for i, x := range [splitWords]uint64{bit[uint64](wrong != nil), uint64(color), uint64(o.Timeout), uint64(o.Check),
		bit[uint64](o.RankOrder), bit[uint64](o.Staged), o.Hints.hash()} {
		binary.LittleEndian.PutUint64(mine[8*i:], x)
	}
	all := make([]byte, n*len(mine))
	if f := eng.Exchange(ctx, k, mine, all); f != nil {
		return f
	}
	word := func(r, i int) uint64 { return binary.LittleEndian.Uint64(all[(r*splitWords+i)*8:]) }
	first := map[uint64]int{} // the first rank of each color
	for r := range n {
		if word(r, 0) != 0 {
			return refusedOn(ctx, eng, k, r, wrong)
		}
		color := word(r, 1)
		if int64(color) < 0 {
			continue
		}
		to, known := first[color]
		if !known {
			first[color] = r
			continue
		}
		for i, name := range []string{2: "Timeout", 3: "Check", 4: "RankOrder", 5: "Staged", 6: "Hints"} {
			if name != "" && word(r, i) != word(to, i) {
				return &call.Fault{Code: call.Version, Peer: r,
					Err: fmt.Errorf("ranks %d and %d, both of color %d, have set different Options.%s", to, r, color, name)}
			}
		}
	}
	return nil
}

// refusedOn gives all ranks the error of rank r, the lowest rank that has one.
func refusedOn(ctx context.Context, eng *cpu.Comm, k *call.Call, r int, wrong error) *call.Fault {
	mine, all := make([]byte, refusedText), make([]byte, refusedText*eng.Size())
	if wrong != nil {
		copy(mine, wrong.Error())
	}
	if f := eng.Exchange(ctx, k, mine, all); f != nil {
		return f
	}
	text := strings.TrimRight(string(all[r*refusedText:(r+1)*refusedText]), "\x00")
	return &call.Fault{Code: call.Argument, Peer: r, Err: fmt.Errorf("on rank %d: %s", r, text)}
}
