package shrink

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/links"
	"github.com/goccl/goccl/internal/agree"
)

// notice is a message of an agreement.
type notice struct {
	says    agree.Notice
	code    call.Code
	attempt uint32 // which Shrink of the Comm
}

// numbers are ranks as another type of number.
func numbers[To, From int | int32](ranks []From) (list []To) {
	for _, r := range ranks {
		list = append(list, To(r))
	}
	return list
}

// noticeHead precedes the lists of a notice: ranks, ended, of, left and sure. A list is runs of
// consecutive ranks, 8 bytes each: the first, and how many. So the members of a large Comm take 8
// bytes for each gap that the lost leave, and not 4 for each member.
//
//	0 bytes, with this head 4 | 4 CRC32C of the rest 4 | 8 kind 1 | 9 code 1 | 10 zero 2 |
//	12 attempt 4 | 16 ballot 8 | 24 lead 4 | 28 runs of each list 5 * 4
const (
	lists      = 5
	noticeHead = 28 + 4*lists
	runBytes   = 8
)

func (n *notice) append(b []byte) []byte {
	le, from := binary.LittleEndian, len(b)
	b = le.AppendUint32(b, 0)
	b = append(b, 0, 0, 0, 0, byte(n.says.Kind), byte(n.code), 0, 0)
	b = le.AppendUint32(b, n.attempt)
	b = le.AppendUint64(b, n.says.Ballot)
	b = le.AppendUint32(b, uint32(n.says.Lead))
	b = append(b, make([]byte, 4*lists)...)
	for i, list := range [lists][]int32{n.says.Ranks, n.says.Ended, n.says.For, n.says.Left, n.says.Sure} {
		before := len(b)
		b = appendRuns(b, list)
		le.PutUint32(b[from+28+4*i:], uint32(len(b)-before)/runBytes)
	}
	le.PutUint32(b[from:], uint32(len(b)-from))
	le.PutUint32(b[from+4:], crc32.Checksum(b[from+8:], links.Castagnoli))
	return b
}

// appendRuns appends the runs of a list.
func appendRuns(b []byte, list []int32) []byte {
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n] == list[0]+int32(n) {
			n++
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(list[0]))
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
		list = list[n:]
	}
	return b
}

// Bytes is how many bytes n has on the wire.
func Bytes(n *agree.Notice) int {
	w := notice{says: *n}
	return len(w.append(nil))
}

var errNotice = errors.New("a notice of an agreement is damaged")

// parseNotice takes a notice of a Comm of size ranks off b. It takes 0 bytes if not all of
// it has come.
func parseNotice(b []byte, size int) (n notice, taken int, err error) {
	if len(b) < noticeHead {
		return n, 0, nil
	}
	le := binary.LittleEndian
	whole, runs := le.Uint32(b), uint64(0)
	for i := range lists {
		runs += uint64(le.Uint32(b[28+4*i:]))
	}
	if runs > lists*uint64(size) || uint64(whole) != noticeHead+runBytes*runs {
		return n, 0, errNotice
	}
	if len(b) < int(whole) {
		return n, 0, nil
	}
	b = b[:whole]
	n = notice{agree.Notice{Kind: agree.Kind(b[8]), Ballot: le.Uint64(b[16:]), Lead: int32(le.Uint32(b[24:]))},
		call.Code(b[9]), le.Uint32(b[12:])}
	if le.Uint32(b[4:]) != crc32.Checksum(b[8:], links.Castagnoli) || !n.says.Kind.Valid() || n.code > call.Closed ||
		n.says.Lead < 0 || int(n.says.Lead) >= size {
		return notice{}, 0, errNotice
	}
	rest := b[noticeHead:]
	for i, list := range [lists]*[]int32{&n.says.Ranks, &n.says.Ended, &n.says.For, &n.says.Left, &n.says.Sure} {
		if *list, rest, err = parseRuns(rest, le.Uint32(b[28+4*i:]), size); err != nil {
			return notice{}, 0, err
		}
	}
	if n.says.Kind != agree.Quit && !ascend(n.says.Ranks) { // package agree looks for ranks by bisection
		return notice{}, 0, errNotice
	}
	return n, int(whole), nil
}

// ascend reports whether each rank is larger than the one before.
func ascend(ranks []int32) bool {
	for i := 1; i < len(ranks); i++ {
		if ranks[i] <= ranks[i-1] {
			return false
		}
	}
	return true
}

// parseRuns takes so many runs of ranks of a Comm of size ranks, off b: size ranks together at most.
func parseRuns(b []byte, runs uint32, size int) (list []int32, rest []byte, err error) {
	for ; runs > 0; runs-- {
		first, n := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
		if n == 0 || uint64(first)+uint64(n) > uint64(size) || len(list)+int(n) > size {
			return nil, nil, errNotice
		}
		for i := range n {
			list = append(list, int32(first+i))
		}
		b = b[runBytes:]
	}
	return list, b, nil
}
