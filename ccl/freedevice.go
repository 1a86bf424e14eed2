package ccl

import (
	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/op"
)

// Which device a newcomer takes. Ranks that stay keep theirs, on which their programs have memory.
// So after Shrink, or where a spare has taken a number, the devices of a host are not those by the
// places of its ranks any more, and two ranks on one device are an error of NCCL. All ranks say
// which devices they have, and those that have none take the first that is free on their host, one
// after the other: each computes that for all.

// freeDevice sets the device of this rank, the local-th of locals on its host, unless its program
// or its last Comm has. It leaves it open where no backend has devices, or none is free: then the
// backend says what is wrong. All ranks of t call it.
func (t vote) freeDevice(o *Options, local, locals int) *call.Fault {
	backends := withDevices(o.Backend)
	if backends == nil { // the same on all ranks
		return nil
	}
	mine := []int64{-1, int64(local)}
	if o.Device != nil {
		mine[0] = int64(*o.Device)
	}
	all := make([]int64, 2*t.eng.Size())
	if err := t.run(op.AllGather, TypeInt64, Sum, bytesOf(all), bytesOf(mine)); err != nil {
		return faultOf(err)
	}
	if o.Device != nil {
		return nil
	}
	topo := t.eng.Topology()
	taken := map[int]bool{}
	for r := range t.eng.Size() {
		if topo.Node(r) == topo.Node(t.eng.Rank()) && all[2*r] >= 0 {
			taken[int(all[2*r])] = true
		}
	}
	for r := range t.eng.Rank() + 1 {
		if topo.Node(r) != topo.Node(t.eng.Rank()) || all[2*r] >= 0 {
			continue
		}
		at := int(all[2*r+1])
		device, ok := firstFree(backends, at, max(locals, at+1), taken)
		if ok {
			taken[device] = true
		}
		if ok && r == t.eng.Rank() {
			o.Device = &device
		}
	}
	return nil
}

// withDevices are the backends of that name, or all if it is "", that have devices.
func withDevices(name string) (list []*engine.Backend) {
	for _, b := range compiledIn() {
		if b.Choose != nil && (name == "" || name == b.Name) {
			list = append(list, b)
		}
	}
	return list
}

// firstFree is the device that the rank would take by its place, if nobody has it, or else the first that nobody has.
func firstFree(backends []*engine.Backend, local, locals int, taken map[int]bool) (device int, ok bool) {
	for _, b := range backends {
		device, err := b.Choose(-1, local, locals)
		if err == nil && device < 0 { // it needs none
			return 0, false
		}
		if err == nil && !taken[device] {
			return device, true
		}
		for other := range len(taken) + 1 {
			if taken[other] {
				continue
			}
			if device, err := b.Choose(other, local, locals); err == nil {
				return device, true
			}
		}
	}
	return 0, false
}
