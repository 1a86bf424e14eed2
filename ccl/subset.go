package ccl

import (
	"context"
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/cpu"
	"github.com/goccl/goccl/ccl/internal/plane"
)

// Subset makes a Comm of some ranks of c, in the order of the list, which they alone call, all with the
// same list and tag, as MPI_Comm_create_group. It is no call of c: the other ranks take no part, any
// goroutine may call it, and c may be in a call meanwhile. Of several Subsets that have ranks in
// common, those that overlap in time have different tags. Tags are not negative.
//
// All ranks get the Comm, or all an error, and c goes on. If a rank of the list does not come before ctx
// or Options.Timeout ends, the others get ErrTimeout, and Missing names those that are missing; if the
// context of one is canceled, all that have come get ErrCanceled at once, and Peer names it; if one has
// another list, all that come to the lowest rank of theirs get ErrMismatch. Once all have come a
// context that ends is heeded by all or by none. If c fails, Subset fails with it.
//
// The new Comm has c's Options without Store, so that it cannot grow, and is to be closed like c.
func Subset(ctx context.Context, c *Comm, ranks []int, tag int) (*Comm, error) {
	const name = "Subset"
	switch err := noContext(ctx, c, name); {
	case err != nil:
		return nil, err
	case c.isNil():
		return nil, refuseNone(name)
	case c.life.shut():
		return nil, c.refuse(name, ErrClosed, whyShut())
	}
	refuse := func(format string, a ...any) error {
		return c.refuse(name, ErrArgument, fmt.Errorf(format, a...))
	}
	seen := map[int]bool{}
	for _, r := range ranks {
		if r < 0 || r >= c.Size() {
			return nil, refuse("rank %d is in the list; the ranks are 0 to %d", r, c.Size()-1)
		}
		if seen[r] {
			return nil, refuse("rank %d is in the list twice", r)
		}
		seen[r] = true
	}
	switch {
	case !seen[c.Rank()]:
		return nil, refuse("this rank, %d, is not in the list %v", c.Rank(), ranks)
	case tag < 0:
		return nil, refuse("the tag is %d; tags are 0 and more", tag)
	}
	a, err := c.life.letters.open(c)
	if err != nil {
		return nil, c.refused(name, call.NewFault(call.Backend, -1, "%w", err))
	}
	if err := ctx.Err(); err != nil {
		return nil, c.refused(name, call.CtxFault(err, c.rank, nil))
	}
	ranks = slices.Clone(ranks)
	o := c.opt.ofPart(fmt.Sprintf("%s/subset %d", c.Name(), tag))
	child, f := newComm(o, c.tab, c.host, o.Name, func(eo plane.Options) (*cpu.Comm, *call.Fault) {
		return cpu.Subset(ctx, c.eng, a, ranks, tag, eo)
	}, func(child *cpu.Comm) (*library, *call.Fault) {
		anew := o
		anew.Backend = c.lib.backend.Name
		if c.lib.device >= 0 {
			anew.Device = &c.lib.device
		}
		lib, f := openLibrary(ctx, child, &anew.Options)
		if f == nil { // all ranks have the Comm, though it may fail here
			_ = o.links.agree(context.WithoutCancel(ctx), child)
		}
		return lib, f
	})
	if f != nil {
		return nil, c.life.letters.errorOf(c, name, f)
	}
	return child, nil
}
