package ccl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/goccl/goccl/internal/value"
)

// MaxValue is how many bytes the values of one call may take at most, encoded and taken together:
// those that root gives to ScatterValues, or that all ranks give to GatherValues or
// AllGatherValues. Larger data are for the calls on slices.
const MaxValue = 1 << 30

// Package internal/value encodes values: exactly, or not at all. A parcel is one value, encoded, or
// why there is none. Ranks first learn each other's heads, of two words, so that all of them know
// the sizes, and whether a rank could not encode its value, before any memory is allocated and
// before they choose what to do next.

// The first word of a head says what follows.
const (
	valueFollows  = 0x65756c61766c6363 // "cclvalue"
	reasonFollows = 0x6e6f736165726363 // "ccreason"
)

// mostReason is how long a reason may be: an encoder of the program may return any error.
const mostReason = 1024

// parcel is an encoded value, or the reason why it could not be encoded.
type parcel struct {
	data   []byte
	refuse bool // data is a reason
}

// pack encodes v, where other values of the call take some of the limit.
func pack[V any](v V, limit, taken int) parcel {
	data, err := value.Encode(v, limit-taken)
	switch {
	case errors.Is(err, value.ErrTooLarge):
		text := fmt.Appendf(nil, "a %T is too large: MaxValue is %d bytes, encoded", v, limit)
		if taken > 0 {
			text = fmt.Appendf(text, ", of which the values before it take %d", taken)
		}
		return parcel{text, true}
	case err != nil:
		text := fmt.Sprintf("a %T cannot be encoded: %v", v, err)
		if len(text) > mostReason {
			text = strings.ToValidUTF8(text[:mostReason], "")
		}
		return parcel{[]byte(text), true}
	}
	return parcel{data: data}
}

// head is what other ranks learn of p before they get it.
func (p parcel) head() [2]uint64 {
	if p.refuse {
		return [2]uint64{reasonFollows, uint64(len(p.data))}
	}
	return [2]uint64{valueFollows, uint64(len(p.data))}
}

// heads are those of one parcel or several, two words each, as another rank has sent them.
type heads []uint64

// sizes are the lengths of the parcels, and of which rank the first reason is, or -1. Heads that no
// rank can have sent, and parcels that take more than limit, are errors: nothing has been allocated
// for them.
func (h heads) sizes(limit int) (lengths []int, refused int, err error) {
	lengths, refused = make([]int, len(h)/2), -1
	total := uint64(0)
	for i := range lengths {
		what, n := h[2*i], h[2*i+1]
		switch {
		case what == reasonFollows && n <= mostReason:
			if refused < 0 {
				refused = i
			}
		case what != valueFollows || n > uint64(limit):
			return nil, i, errNoParcel
		}
		lengths[i] = int(n)
		total += n
	}
	if refused < 0 && total > uint64(limit) {
		return nil, -1, fmt.Errorf("the values take %d bytes, encoded: MaxValue is %d", total, limit)
	}
	return lengths, refused, nil
}

var errNoParcel = errors.New("what it has sent is no value: that rank makes another call, or is another program")

// BroadcastValue gives v of root to every rank: numbers, strings, structs, slices, maps, pointers,
// and what is in interfaces. It is mpi4py's bcast, torch.distributed's broadcast_object_list and
// Horovod's broadcast_object.
//
// What v is arrives, by reflect.DeepEqual, on all ranks, root among them: nil is told from empty, a
// pointer to zero from nil, -0 from 0, and NaN keeps its bits. If some of it cannot travel, all
// ranks get the same ErrArgument, with the path to it, such as "at .Next.Labels[3]", and the Comm
// is good. These cannot:
//   - a field that is not exported, unless it is zero;
//   - a function, a channel or an unsafe.Pointer, unless it is nil;
//   - a value in an interface whose type gob.Register does not know; numbers, strings and slices of
//     them need no registration;
//   - what leads back to itself, or is nested more than 100,000 deep.
//
// Where two pointers lead to one value, each leads to its own copy afterwards; so does a pointer
// that is a key of a map. A type with methods GobEncode and GobDecode, or MarshalBinary and
// UnmarshalBinary, arrives as these make it, unless the methods are those of an embedded field. A
// time.Time loses its monotonic reading; its location comes back where the rank has it, else its
// offset does.
//
// V and its fields must be the same on all ranks. A rank whose V is another gets ErrMismatch and aborts the Comm.
//
// BroadcastValue and its relatives are for settings, names and results, not for arrays: they allocate, and make two
// blocking calls each.
func BroadcastValue[V any](ctx context.Context, c *Comm, v V, root int) (out V, err error) {
	x, err := beginValue(ctx, c, "BroadcastValue", root)
	if err != nil {
		return out, err
	}
	var p parcel
	if c.Rank() == root {
		p = pack(v, MaxValue, 0)
	}
	h := p.head()
	if err := Broadcast(ctx, c, h[:], root); err != nil {
		return out, err
	}
	lengths, refused, err := heads(h[:]).sizes(MaxValue)
	if err != nil {
		return out, x.disagree(root, err)
	}
	if refused >= 0 {
		return out, x.reason(ctx, p.data, lengths[0], root)
	}
	if c.Rank() != root {
		p.data = make([]byte, lengths[0])
	}
	if err := Broadcast(ctx, c, p.data, root); err != nil {
		return out, err
	}
	return unpack[V](x, p.data, root)
}

// AllGatherValues gives the v of all ranks to every rank, in the order of the ranks, as mpi4py's allgather and
// torch.distributed's all_gather_object do. See BroadcastValue for what v may be. If a rank cannot encode its v, all
// ranks get the same ErrArgument, which names it as Peer.
func AllGatherValues[V any](ctx context.Context, c *Comm, v V) ([]V, error) {
	return gatherValues(ctx, c, "AllGatherValues", v, 0, true, func(all []byte, lengths []int, mine []byte) error {
		return AllGatherV(ctx, c, all, lengths, mine)
	})
}

// GatherValues gives the v of all ranks to root, in the order of the ranks, and nil to the others,
// as mpi4py's gather and torch.distributed's gather_object do. See BroadcastValue for what v may
// be. If a rank cannot encode its v, all ranks get the same ErrArgument, which names it as Peer.
func GatherValues[V any](ctx context.Context, c *Comm, v V, root int) ([]V, error) {
	return gatherValues(ctx, c, "GatherValues", v, root, c.Rank() == root,
		func(all []byte, lengths []int, mine []byte) error {
			return GatherV(ctx, c, all, lengths, mine, root)
		})
}

// gatherValues is the v of all ranks, which gather gathers, encoded, on each rank that has here set.
func gatherValues[V any](ctx context.Context, c *Comm, name string, v V, root int, here bool,
	gather func(all []byte, lengths []int, mine []byte) error) ([]V, error) {
	x, err := beginValue(ctx, c, name, root)
	if err != nil {
		return nil, err
	}
	p := pack(v, MaxValue, 0)
	lengths, total, err := x.lengths(ctx, p)
	if err != nil {
		return nil, err
	}
	var all []byte
	if here {
		all = make([]byte, total)
	}
	if err := gather(all, lengths, p.data); err != nil || !here {
		return nil, err
	}
	return unpackAll[V](x, all, lengths)
}

// ScatterValues gives vs[r] of root to rank r, as mpi4py's scatter and torch.distributed's
// scatter_object_list do. vs has Size values on root, and no meaning on the others. See
// BroadcastValue for what they may be. If root has another number of values, or cannot encode one
// of them, all ranks get the same ErrArgument.
func ScatterValues[V any](ctx context.Context, c *Comm, vs []V, root int) (v V, err error) {
	x, err := beginValue(ctx, c, "ScatterValues", root)
	if err != nil {
		return v, err
	}
	h, all, why := make(heads, 2*c.Size()), []byte(nil), parcel{}
	if c.Rank() == root {
		h, all, why = packAll(vs, c.Size(), MaxValue)
	}
	if err := Broadcast(ctx, c, h, root); err != nil {
		return v, err
	}
	lengths, refused, err := h.sizes(MaxValue)
	if err != nil {
		return v, x.disagree(root, err)
	}
	if refused >= 0 {
		return v, x.reason(ctx, why.data, lengths[refused], root)
	}
	mine := make([]byte, lengths[c.Rank()])
	if err := ScatterV(ctx, c, mine, all, lengths, root); err != nil {
		return v, err
	}
	return unpack[V](x, mine, root)
}

// SendValue sends v to a RecvValue on peer. See BroadcastValue for what v may be. If it cannot be
// encoded, both ranks get the same ErrArgument.
func SendValue[V any](ctx context.Context, c *Comm, v V, peer int) error {
	x, err := beginValue(ctx, c, "SendValue", peer)
	if err != nil {
		return err
	}
	p := pack(v, MaxValue, 0)
	h := p.head()
	if err := Send(ctx, c, h[:], peer); err != nil {
		return err
	}
	if err := Send(ctx, c, p.data, peer); err != nil {
		return err
	}
	if p.refuse {
		return x.noValue(c.Rank(), p.data)
	}
	return nil
}

// RecvValue returns what peer sends by SendValue.
func RecvValue[V any](ctx context.Context, c *Comm, peer int) (v V, err error) {
	x, err := beginValue(ctx, c, "RecvValue", peer)
	if err != nil {
		return v, err
	}
	h := make(heads, 2)
	if err := Recv(ctx, c, h, peer); err != nil {
		return v, err
	}
	lengths, refused, err := h.sizes(MaxValue)
	if err != nil {
		return v, x.disagree(peer, err)
	}
	data := make([]byte, lengths[0])
	if err := Recv(ctx, c, data, peer); err != nil {
		return v, err
	}
	if refused >= 0 {
		return v, x.noValue(peer, data)
	}
	return unpack[V](x, data, peer)
}

// packAll encodes a value for each of n ranks: their heads, and the parcels one after another. If
// that cannot be done, the first head is that of the reason, which is returned.
func packAll[V any](vs []V, n, limit int) (heads, []byte, parcel) {
	h, all := make(heads, 2*n), []byte(nil)
	fail := func(text string) (heads, []byte, parcel) {
		p := parcel{[]byte(text), true}
		for r := range n {
			h[2*r], h[2*r+1] = reasonFollows, uint64(len(p.data))
		}
		return h, nil, p
	}
	if len(vs) != n {
		return fail(fmt.Sprintf("%d values for %d ranks", len(vs), n))
	}
	for r, v := range vs {
		p := pack(v, limit, len(all))
		if p.refuse {
			return fail(string(p.data))
		}
		all = append(all, p.data...)
		head := p.head()
		copy(h[2*r:], head[:])
	}
	return h, all, parcel{}
}

// unpack returns the value that rank from has sent.
func unpack[V any](x valueCall, data []byte, from int) (V, error) {
	v, err := value.Decode[V](data)
	if err != nil {
		return v, x.disagree(from, fmt.Errorf("what it has sent is no %T: %w", v, err))
	}
	return v, nil
}

// unpackAll returns the values of all ranks.
func unpackAll[V any](x valueCall, all []byte, lengths []int) ([]V, error) {
	list := make([]V, len(lengths))
	for r, n := range lengths {
		var err error
		if list[r], err = unpack[V](x, all[:n], r); err != nil {
			return nil, err
		}
		all = all[n:]
	}
	return list, nil
}

// valueCall is one call that moves values, by its name.
type valueCall struct {
	c  *Comm
	op string
}

// beginValue checks what can be wrong with a call that moves values, but for the values. at is its root or peer.
func beginValue(ctx context.Context, c *Comm, op string, at int) (valueCall, error) {
	x := valueCall{c, op}
	if err := noContext(ctx, c, op); err != nil {
		return x, err
	}
	if c.isNil() {
		return x, refuseNone(op)
	}
	if at < 0 || at >= c.Size() {
		return x, x.refuse(-1, fmt.Errorf("root or peer is %d; the ranks are 0 to %d", at, c.Size()-1))
	}
	return x, nil
}

// lengths tells all ranks how long the parcel of each is, and their sum. If one of them has none,
// all get the reason of the lowest such rank as their error.
func (x valueCall) lengths(ctx context.Context, p parcel) (lengths []int, total int, err error) {
	mine, h := p.head(), make(heads, 2*x.c.Size())
	if err := AllGather(ctx, x.c, h, mine[:]); err != nil {
		return nil, 0, err
	}
	lengths, refused, err := h.sizes(MaxValue)
	switch {
	case err != nil && refused >= 0:
		return nil, 0, x.disagree(refused, err)
	case err != nil:
		return nil, 0, x.refuse(-1, err)
	case refused >= 0:
		return nil, 0, x.reason(ctx, p.data, lengths[refused], refused)
	}
	for _, n := range lengths {
		total += n
	}
	return lengths, total, nil
}

// reason is the error of all ranks after rank from could not encode a value: from tells them why, in n bytes.
func (x valueCall) reason(ctx context.Context, why []byte, n, from int) error {
	if x.c.Rank() != from {
		why = make([]byte, n)
	}
	if err := Broadcast(ctx, x.c, why, from); err != nil {
		return err
	}
	return x.noValue(from, why)
}

// noValue is that error.
func (x valueCall) noValue(from int, why []byte) error {
	return x.refuse(from, fmt.Errorf("rank %d: %s", from, why))
}

func (x valueCall) refuse(peer int, err error) error {
	return x.c.named(&Error{Code: ErrArgument, Op: x.op, Rank: x.c.Rank(), Peer: peer, Err: err})
}

// disagree is the error of a rank that cannot read what rank from has sent. The others do not know
// of it, and may go on with the value, so the Comm ends.
func (x valueCall) disagree(from int, err error) error {
	e := x.c.named(&Error{Code: ErrMismatch, Op: x.op, Rank: x.c.Rank(), Peer: from, Err: err})
	x.c.Abort(e)
	return e
}
