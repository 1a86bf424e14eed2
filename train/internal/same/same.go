// Package same makes the ranks of a Comm agree on the arguments of a collective constructor: if
// they differ, or are wrong on any rank, all ranks get an error, and it is the same error: one
// text, and one answer to errors.Is about the errors of io/fs, io, context and ccl and those of the
// system. So a program may decide by it what all ranks do next.
package same

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/goccl/goccl/ccl"
)

// Args compares items, one fact each such as "Stage 3", with those of the other ranks, and hears of
// any bad rank. It is collective over c. bad is what is wrong with this rank's arguments, or nil.
// The error is the same on all ranks, by text and by kind: that of the lowest bad rank, else the
// first item in which the ranks differ from rank 0, and the first rank that does. What else
// errors.Is and errors.As find in bad, such as an error of the program's own, its rank alone finds.
//
// A call where all is well costs one AllReduce of 24 bytes, whatever the number of items.
func Args(ctx context.Context, c *ccl.Comm, what string, bad error, items ...string) error {
	return New(what, bad, items...).Agree(ctx, c)
}

// Facts are the arguments of a call that is made again and again: they are hashed once, and
// compared in each call by the hash.
type Facts struct {
	what  string
	bad   error
	items []string
	sum   uint64
	most  [3]uint64
}

// New makes Facts of what Args takes.
func New(what string, bad error, items ...string) *Facts {
	h := fnv.New64a()
	for _, s := range items {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	return &Facts{what: what, bad: bad, items: items, sum: h.Sum64()}
}

// Agree compares f with the Facts of the other ranks, as Args does. Where all is well it allocates nothing.
func (f *Facts) Agree(ctx context.Context, c *ccl.Comm) error {
	if c == nil {
		return fmt.Errorf("%s: the Comm is nil", f.what)
	}
	f.most = [3]uint64{f.sum, ^f.sum, 0}
	if f.bad != nil {
		f.most[2] = 1
	}
	if err := ccl.AllReduce(ctx, c, f.most[:], f.most[:], ccl.Max); err != nil {
		if f.bad != nil { // which the others cannot be told
			return fmt.Errorf("%s: %w; this rank has: %w", f.what, err, f.bad)
		}
		return fmt.Errorf("%s: %w", f.what, err)
	}
	if f.most[0] == ^f.most[1] && f.most[2] == 0 {
		return nil
	}
	said, err := gather(ctx, c, f.bad, f.items)
	if err != nil {
		return fmt.Errorf("%s: %w", f.what, err)
	}
	return verdict(c.Rank(), f.what, f.bad, said)
}

// A rank's statement is its error, or its items.
type statement struct {
	bad   bool
	text  string // of the error
	kinds []error
	items []string
}

const separator = "\x00"

// gather is what each rank has to say.
func gather(ctx context.Context, c *ccl.Comm, bad error, items []string) ([]statement, error) {
	mine := separator + strings.Join(items, separator)
	if bad != nil {
		mine = "!" + statementOf(bad)
	}
	counts := make([]int, c.Size())
	if err := ccl.AllGather(ctx, c, counts, []int{len(mine)}); err != nil {
		return nil, err
	}
	total := 0
	for _, n := range counts {
		total += n
	}
	all := make([]byte, total)
	if err := ccl.AllGatherV(ctx, c, all, counts, []byte(mine)); err != nil {
		return nil, err
	}
	said := make([]statement, len(counts))
	for r, n := range counts {
		if text, isBad := strings.CutPrefix(string(all[:n]), "!"); isBad {
			said[r].bad = true
			said[r].kinds, said[r].text = kindsOf(text)
		} else {
			said[r].items = strings.Split(string(all[1:n]), separator)
		}
		all = all[n:]
	}
	return said, nil
}

// verdict is the error of rank me.
func verdict(me int, what string, bad error, said []statement) error {
	wrong := slices.IndexFunc(said, func(s statement) bool { return s.bad })
	if wrong >= 0 {
		w := said[wrong]
		alike := !slices.ContainsFunc(said, func(s statement) bool { return !s.bad || s.text != w.text })
		if !alike {
			what = fmt.Sprintf("%s: rank %d", what, wrong)
			if wrong != me {
				bad = nil
			}
		}
		return &told{text: what + ": " + w.text, kinds: w.kinds, own: bad}
	}
	first, rank := len(said[0].items)+1, 0
	for r, s := range said {
		if i := firstDifference(said[0].items, s.items); i >= 0 && i < first {
			first, rank = i, r
		}
	}
	if rank == 0 {
		return errors.New(what + ": the ranks differ in their arguments")
	}
	return fmt.Errorf("%s: ranks differ: rank 0 has %s, rank %d has %s", what,
		item(said[0].items, first), rank, item(said[rank].items, first))
}

// firstDifference is where a and b begin to differ; -1 if nowhere.
func firstDifference(a, b []string) int {
	for i := range max(len(a), len(b)) {
		if item(a, i) != item(b, i) {
			return i
		}
	}
	return -1
}

func item(items []string, i int) string {
	if i < len(items) {
		return items[i]
	}
	return "no more"
}
