package op

import (
	"errors"
	"fmt"
)

// ErrOverlap is the error of a call whose memory overlaps other than in place.
var ErrOverlap = errors.New("dst and src overlap partially")

// Check says what is wrong with a call on rank me of n, whose Elem is set. It looks at numbers
// alone, wherever the memory lies. If nothing is wrong it sets Count, and takes from the call the
// memory that has no meaning on this rank.
func Check(c *Call, n, me int) error {
	if c.Kind != AllReduce {
		return c.check(n, me)
	}
	if c.Count = uint64(c.SrcN); c.DstN != c.SrcN { // the call that is made most
		return lengths(c.DstN, c.SrcN, c.SrcN)
	}
	return c.part(c.SrcAt, 0)
}

// check is Check of the other kinds.
func (c *Call) check(n, me int) error {
	dst, src, root := c.DstN, c.SrcN, int(c.Root)
	if (root < 0 || root >= n) && (c.Kind.Rooted() || c.Kind.Pairwise()) {
		return NoRank(c.Kind, root, n)
	}
	if c.Kind == SendRecv && (c.To < 0 || c.To >= n) {
		return NoRank(c.Kind, c.To, n)
	}
	switch c.Kind {
	case AllToAll:
		c.Count = uint64(src / n)
		if dst != src {
			return lengths(dst, src, src)
		} else if src%n != 0 {
			return fmt.Errorf("%d elements do not divide among %d ranks", src, n)
		}
		return c.overlap()
	case Reduce:
		c.Count = uint64(src)
		if me != root {
			c.dropDst()
		} else if dst != src {
			return lengths(dst, src, src)
		}
		return c.overlap()
	case Broadcast:
		c.Count = uint64(dst)
	case AllGather, Gather:
		c.Count = uint64(src)
		if c.Kind == Gather && me != root {
			c.dropDst()
		} else if dst != n*src {
			return lengths(dst, src, n*src)
		}
		return c.part(c.SrcAt, me*src)
	case ReduceScatter, Scatter:
		c.Count = uint64(dst)
		if c.Kind == Scatter && me != root {
			c.dropSrc()
		} else if src != n*dst {
			return fmt.Errorf("src has %d elements, dst %d: src must have %d, %d for each of %d ranks", src, dst, n*dst, dst, n)
		}
		return c.part(c.DstAt, me*dst)
	case ReduceScatterV, ScatterV:
		return c.checkCounts("src", "dst", n, me)
	case AllGatherV, GatherV:
		return c.checkCounts("dst", "src", n, me)
	case AllToAllV:
		c.Count = 0
		if err := c.checkExchange(n, me); err != nil {
			return err
		}
		return c.overlap()
	case SendRecv:
		c.Count = uint64(dst)
		return c.overlap()
	default: // Send, Recv, Barrier
		c.Count = uint64(max(dst, src))
	}
	return nil
}

// NoRank is the error of a call of kind k whose root or peer is none of n ranks.
func NoRank(k Kind, rank, n int) error {
	what := "root"
	if k.Pairwise() {
		what = "peer"
	}
	return fmt.Errorf("%s is %d; the ranks are 0 to %d", what, rank, n-1)
}

func lengths(dst, src, want int) error {
	return fmt.Errorf("dst has %d elements, src %d: dst must have %d", dst, src, want)
}

func (c *Call) dropDst() { c.Dst, c.DstAt, c.DstN = nil, 0, 0 }
func (c *Call) dropSrc() { c.Src, c.SrcAt, c.SrcN = nil, 0, 0 }

// checkCounts checks the kinds with one vector of counts: the one memory is whole, the other this
// rank's part of it.
func (c *Call) checkCounts(whole, part string, n, me int) error {
	total, before, err := Total("counts", c.DC, n, me)
	if err != nil {
		return err
	}
	c.Count = uint64(total)
	at, all, own := c.SrcAt, c.DstN, c.SrcN
	if whole == "src" {
		at, all, own = c.DstAt, c.SrcN, c.DstN
	}
	switch away := c.Kind.Rooted() && me != int(c.Root); {
	case own != c.DC[me]:
		return fmt.Errorf("%s has %d elements, but counts[%d] is %d", part, own, me, c.DC[me])
	case away && whole == "src":
		c.dropSrc()
	case away:
		c.dropDst()
	case all != total:
		return fmt.Errorf("%s has %d elements, but counts add up to %d", whole, all, total)
	}
	return c.part(at, before)
}

// checkExchange checks an AllToAllV.
func (c *Call) checkExchange(n, me int) error {
	total, _, err := Total("dc", c.DC, n, 0)
	if err == nil && total != c.DstN {
		err = fmt.Errorf("dst has %d elements, but dc adds up to %d", c.DstN, total)
	}
	if err != nil {
		return err
	}
	total, _, err = Total("sc", c.SC, n, 0)
	if err == nil && total != c.SrcN {
		err = fmt.Errorf("src has %d elements, but sc adds up to %d", c.SrcN, total)
	}
	if err == nil && c.DC[me] != c.SC[me] {
		err = fmt.Errorf("dc[%d] is %d and sc[%d] is %d, but they must be equal: both are what this rank keeps", me,
			c.DC[me], me, c.SC[me])
	}
	return err
}

// Elements is how many elements counts are in all.
func Elements(counts []int) (n int) {
	for _, k := range counts {
		n += k
	}
	return n
}

// Total adds up counts, all n of them, and those before rank me.
func Total(name string, counts []int, n, me int) (total, before int, err error) {
	if len(counts) != n {
		return 0, 0, fmt.Errorf("%s has %d entries for %d ranks", name, len(counts), n)
	}
	for r, x := range counts {
		if x < 0 {
			return 0, 0, fmt.Errorf("%s[%d] is %d", name, r, x)
		}
		if r == me {
			before = total
		}
		if total += x; total < 0 {
			return 0, 0, fmt.Errorf("%s add up to more than an int holds", name)
		}
	}
	return total, before, nil
}

// overlap refuses memory that overlaps without being the same.
func (c *Call) overlap() error { return c.part(c.SrcAt, 0) }

// part refuses the memory at an address, this rank's part of the other memory, if it overlaps that
// elsewhere than from element before on.
func (c *Call) part(at uintptr, before int) error {
	whole, size := c.DstAt+c.SrcAt-at, uintptr(c.Elem)
	apart := c.DstN == 0 || c.SrcN == 0 || c.DstAt >= c.SrcAt+uintptr(c.SrcN)*size || c.SrcAt >= c.DstAt+uintptr(c.DstN)*
		size
	if apart || whole+uintptr(before)*size == at {
		return nil
	}
	by, how := int(c.SrcAt-c.DstAt), "after"
	if by < 0 {
		by, how = -by, "before"
	}
	return fmt.Errorf("%w: src (%d elements) begins %d bytes %s dst (%d elements of %d bytes)", ErrOverlap, c.SrcN, by,
		how, c.DstN, c.Elem)
}
