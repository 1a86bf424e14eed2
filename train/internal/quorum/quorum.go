// Package quorum decides which side of a job that fell apart goes on, by counts alone and never by time.
//
// An epoch is the ranks that went on together, each with the state of the job. They alone have a vote
// in what follows: a newcomer is a guest of the epoch until it has the state, and is in the next one. A
// side goes on from an epoch with most of those ranks that have not certainly ended. Two such sides share a
// rank, so there is one. A rank that has tried the next epoch, and does not know whether the others are
// in that, asks for most of both epochs: else some ranks could go on from the one, and some from the other.
// It drops an epoch that nobody can be in: a rank of it never tried it, or all that tried it wait.
//
// Any other rank says in the store that it is out of its epoch, and is in no such side from then on. Once
// most ranks are out, no side can have the most. The ranks of the first side to claim the epoch have the vote
// from then on, and the others none. So a side with the most needs no store, and a rank that is alone is
// granted what it asks, however early, only when no others can go on.
package quorum

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// epoch is the ranks that went on together.
type epoch struct {
	name  int64
	ids   []int64
	ended []int64 // ranks that have ended for certain, and cannot have gone on without this rank
	out   bool    // the store may have heard that this rank is out of it
}

// living are the ranks that may go on.
func (e *epoch) living() []int64 {
	return slices.DeleteFunc(slices.Clone(e.ids), func(id int64) bool { return slices.Contains(e.ended, id) })
}

// here are the ranks of side that are in e.
func (e *epoch) here(side []int64) (list []int64) {
	for _, id := range e.ids {
		if slices.Contains(side, id) {
			list = append(list, id)
		}
	}
	return list
}

// most reports whether side has most of the ranks that may go on, or half of them and the first, or there are none.
func (e *epoch) most(side []int64) bool {
	living := e.living()
	here := 2 * len((&epoch{ids: living}).here(side))
	return here > len(living) || here == len(living) && (here == 0 || slices.Contains(side, living[0]))
}

// Rank is what a rank knows of the epochs. The zero value is that of a newcomer.
type Rank struct {
	id    int64
	base  *epoch   // the last epoch that all its ranks are known to have agreed on; nil for a newcomer
	tried []*epoch // later ones, of which this rank does not know whether all have agreed
}

// New is a newcomer with that id, which no other rank has.
func New(id int64) Rank { return Rank{id: id} }

// Founder is one of n ranks that begin a job. They have the ids from 1 to n, and so are of one epoch
// before they have met.
func Founder(id int64, n int) Rank {
	all := make([]int64, n)
	for i := range all {
		all[i] = int64(i + 1)
	}
	return Rank{id: id, base: &epoch{name: 1, ids: all}}
}

// Said is what a rank tells the others of its side.
type Said struct {
	ID, Epoch int64 // see Rank.Epoch
	Sure      bool  // see Rank.Sure
}

// Epoch is the name of the last epoch that all its ranks are known to have agreed on, 0 for a newcomer.
func (r *Rank) Epoch() int64 {
	if r.base == nil {
		return 0
	}
	return r.base.name
}

// Sure reports whether the rank has tried no epoch after that.
func (r *Rank) Sure() bool { return len(r.tried) == 0 }

// epochs are those from which others may go on.
func (r *Rank) epochs() []*epoch {
	if r.base == nil {
		return r.tried
	}
	return append([]*epoch{r.base}, r.tried...)
}

// Hear takes the last epoch that the rank has tried if it is the Epoch of another rank, and drops
// those that a rank of its side has not tried.
func (r *Rank) Hear(side []Said) {
	for i, e := range slices.Backward(r.tried) {
		if slices.ContainsFunc(side, func(s Said) bool { return s.Epoch == e.name }) {
			r.base, r.tried = e, r.tried[i+1:]
			break
		}
	}
	r.tried = slices.DeleteFunc(r.tried, func(e *epoch) bool {
		return slices.ContainsFunc(side, func(s Said) bool {
			return s.Sure && s.Epoch == r.Epoch() && slices.Contains(e.ids, s.ID)
		})
	})
}

// Base is the last epoch that all its ranks are known to have agreed on, for Learn.
func (r *Rank) Base() (name int64, ids []int64) {
	if r.base == nil {
		return 0, nil
	}
	return r.base.name, r.base.ids
}

// Learn has a newcomer be a guest of the epoch of another rank of its side.
func (r *Rank) Learn(name int64, ids []int64) {
	if r.Sure() && !r.Votes() && name != r.Epoch() {
		r.base = &epoch{name: name, ids: slices.Clone(ids)}
	}
}

// Votes reports whether the rank has a vote: it is neither a guest nor a newcomer.
func (r *Rank) Votes() bool { return r.base != nil && slices.Contains(r.base.ids, r.id) }

// Ended notes that a rank has certainly ended.
func (r *Rank) Ended(id int64) {
	for _, e := range r.epochs() {
		if slices.Contains(e.ids, id) && !slices.Contains(e.ended, id) {
			e.ended = append(e.ended, id)
		}
	}
}

// May reports whether side, of which the rank is one, may go on without the store as far as the rank knows. All of
// side must say so, and have the same Epoch.
func (r *Rank) May(side []int64) bool {
	return r.base != nil && !slices.ContainsFunc(r.epochs(), func(e *epoch) bool { return e.out || !e.most(side) })
}

// Try notes that the rank agrees to an epoch. That is before any other rank hears so.
func (r *Rank) Try(name int64, side []int64) {
	r.tried = append(r.tried, &epoch{name: name, ids: slices.Clone(side)})
}

// Drop takes Try back: a rank of that side has not agreed.
func (r *Rank) Drop() { r.tried = r.tried[:len(r.tried)-1] }

// Adopt is called once side goes on as an epoch of that name. It returns the epochs of which some ranks
// are lost, and should hear in the store that others go on.
func (r *Rank) Adopt(name int64, side []int64) (tell []int64) {
	for _, e := range r.epochs() {
		if living := e.living(); e.name != name && len(e.here(side)) < len(living) {
			tell = append(tell, e.name)
		}
	}
	r.base, r.tried = &epoch{name: name, ids: slices.Clone(side)}, nil
	return tell
}

// Store is what is asked of a boot.Store.
type Store interface {
	Set(ctx context.Context, key string, value []byte) error
	Get(ctx context.Context, key string) ([]byte, error)
	Add(ctx context.Context, key string, n int64) (int64, error)
}

func key(name int64, what string) string {
	return fmt.Sprintf("goccl/elastic/%016x/%s", uint64(name), what)
}

// outKey is the number of a rank that is out of an epoch: 1, or unsure if it has tried that, and does
// not know more. The epoch 0 is that of a newcomer.
func outKey(name, id int64) string { return key(name, fmt.Sprintf("out/%016x", uint64(id))) }

// waitKey is the number of a rank that is in that epoch, and has said which others it has tried since.
func waitKey(name, id int64) string { return key(name, fmt.Sprintf("waits/%016x", uint64(id))) }

const unsure = 1 << 32

// Tell says in the store that ranks go on from an epoch.
func Tell(ctx context.Context, s Store, name int64) error {
	_, err := s.Add(ctx, key(name, "on"), 1)
	return err
}

// on reports whether others go on from an epoch of the rank, as the store knows.
func (r *Rank) on(ctx context.Context, s Store) (bool, error) {
	for _, e := range r.epochs() {
		if n, err := s.Add(ctx, key(e.name, "on"), 0); err != nil || n > 0 {
			return n > 0, err
		}
	}
	return false, nil
}

// errUnsure is the answer of Leave until it is known whether others are in an epoch.
var errUnsure = errors.New("it is not known whether an epoch has come about")

// Leave says in the store that the rank is out of its epoch. That is so of a rank that ends, too. A rank that has
// tried other epochs waits until nobody can be in those.
func (r *Rank) Leave(ctx context.Context, s Store) error {
	if err := r.resolve(ctx, s); err != nil {
		return err
	}
	switch {
	case !r.Sure():
		if on, err := r.on(ctx, s); err != nil || on { // so the others have what they need of this rank
			return err
		}
		return errUnsure
	case r.base == nil: // it has never met the others
		_, err := s.Add(ctx, outKey(0, r.id), 1)
		return err
	}
	r.base.out = true // before anybody hears of it
	_, err := s.Add(ctx, outKey(r.base.name, r.id), 1)
	return err
}

// resolve drops the epochs that the rank has tried, and nobody can be in, after it has said in the
// store which these are. One that others claim has come about.
func (r *Rank) resolve(ctx context.Context, s Store) error {
	if r.Sure() {
		return nil
	}
	for _, e := range r.tried {
		e.out = true
		if _, err := s.Add(ctx, outKey(e.name, r.id), unsure); err != nil {
			return err
		}
	}
	r.base.out = true // it tries no others that come after this one
	if _, err := s.Add(ctx, waitKey(r.base.name, r.id), 1); err != nil {
		return err
	}
	var left []*epoch
	for i, e := range r.tried {
		switch first, err := claimed(ctx, s, e); {
		case err != nil:
			return err
		case first != nil:
			r.base, r.tried = first, r.tried[i+1:]
			return r.resolve(ctx, s)
		}
		switch empty, err := r.empty(ctx, s, e); {
		case err != nil:
			return err
		case !empty:
			left = append(left, e)
		}
	}
	r.tried = left
	return nil
}

// empty reports whether nobody can be in e, which the rank has tried: another one has not tried it,
// and will not, or all wait.
func (r *Rank) empty(ctx context.Context, s Store, e *epoch) (bool, error) {
	all := true
	for _, id := range e.ids {
		var n [4]int64
		base := r.base.name
		for i, key := range []string{outKey(0, id), outKey(base, id), waitKey(base, id), outKey(e.name, id)} {
			var err error
			if n[i], err = s.Add(ctx, key, 0); err != nil {
				return false, err
			}
		}
		if n[0] > 0 || n[1] > 0 || n[2] > 0 && n[3] == 0 {
			return true, nil
		}
		all = all && (n[3] >= unsure || slices.Contains(e.ended, id))
	}
	return all, nil
}

// Ask asks the store once for what this rank of a side does not know: afterwards the side may be one that
// May go on, or others do. Of a side that may not have the most one rank claims the epoch, once all are of the
// same: a rank that claimed on while the others still follow its last claim would stay ahead of them for good. said
// is what the ranks of the side have told each other last.
func (r *Rank) Ask(ctx context.Context, s Store, said []Said, claims bool) (others bool, err error) {
	var side []int64
	same := true
	for _, o := range said {
		side, same = append(side, o.ID), same && o.Epoch == said[0].Epoch
	}
	if on, err := r.on(ctx, s); err != nil || on {
		return on, err
	}
	if err := r.resolve(ctx, s); err != nil || !r.Sure() {
		return false, err
	}
	if r.base == nil || len(r.base.here(side)) == 0 { // newcomers, without those that have a vote
		return true, nil
	}
	first, err := claimed(ctx, s, r.base)
	if err == nil && first == nil && same {
		if err = r.claim(ctx, s, r.base.here(side), claims); err == nil {
			first, err = claimed(ctx, s, r.base)
		}
	}
	if err != nil || first == nil {
		return false, err
	}
	if len(first.here(side)) == 0 {
		return true, nil
	}
	r.base = first
	return false, nil
}

// whoKey is the value of a claim: who makes it.
func whoKey(token int64) string { return key(token, "who") }

// claimed is what is left of e, by the first claim: those that made it, under another name. It is nil
// if there is none.
func claimed(ctx context.Context, s Store, e *epoch) (*epoch, error) {
	n, err := s.Add(ctx, key(e.name, "next"), 0)
	if err != nil || n == 0 {
		return nil, err
	}
	first := &epoch{name: math.MaxInt64 - n}
	text, err := s.Get(ctx, whoKey(first.name))
	for id := range slices.Chunk(text, 8) {
		if len(id) == 8 {
			first.ids = append(first.ids, int64(binary.BigEndian.Uint64(id)))
		}
	}
	return first, err
}

// claim says that the rank is out, and then, if claims, has the ranks that are here take the votes of
// the epoch, if most others are out, too. The number of next is changed by one claim alone: the sum of
// two is no int64, so the number stays. So a rank that is lost between any two steps leaves nothing
// half done.
func (r *Rank) claim(ctx context.Context, s Store, here []int64, claims bool) error {
	if err := r.Leave(ctx, s); err != nil || !claims {
		return err
	}
	out, living := 0, r.base.living()
	for _, id := range living {
		n, err := s.Add(ctx, outKey(r.base.name, id), 0)
		if err != nil {
			return err
		}
		if n > 0 {
			out++
		}
	}
	if 2*out <= len(living) {
		return nil
	}
	var ids []byte
	for _, id := range here {
		ids = binary.BigEndian.AppendUint64(ids, uint64(id))
	}
	token := 1 + rand.Int64N(math.MaxInt64/2-1)
	if err := s.Set(ctx, whoKey(token), ids); err != nil {
		return err
	}
	_, _ = s.Add(ctx, key(r.base.name, "next"), math.MaxInt64-token) // whatever it answers, it may have been carried out
	return nil
}
