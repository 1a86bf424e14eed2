package boot

import "encoding/binary"

// A table has the values of a round, in the order of ranks. What ranks of one job say is much
// alike, and of one host more so; so it goes over the wire as what differs from the rank before:
//
//	run   uvarint  so many ranks in a row have this value
//	same  1        so many bytes at its beginning are those of the value before it
//	rest  uvarint  so many bytes follow
const maxSame = 255

// tableFrame packs the values of a round.
func tableFrame(values [][]byte) []byte {
	b := make([]byte, frameHead, frameHead+tableHint(values))
	b[0] = frameTable
	var before []byte
	for r := 0; r < len(values); {
		v, run := values[r], 1
		for r+run < len(values) && string(values[r+run]) == string(v) {
			run++
		}
		same := sameStart(before, v)
		b = binary.AppendUvarint(b, uint64(run))
		b = append(b, byte(same))
		b = binary.AppendUvarint(b, uint64(len(v)-same))
		b = append(b, v[same:]...)
		before, r = v, r+run
	}
	binary.BigEndian.PutUint32(b[5:], uint32(len(b)-frameHead))
	return b
}

// tableHint is about how large the table is, from one value in the middle, and never more than all
// values need.
func tableHint(values [][]byte) int {
	if len(values) < 3 {
		return 16 + len(values)*8
	}
	most := 0
	for _, v := range values {
		most += tableEntry + len(v)
	}
	m := len(values) / 2
	return min(most, len(values)*(4+len(values[m])-sameStart(values[m-1], values[m])))
}

// sameStart is how many bytes at the beginning of both are the same, as far as a table can say.
func sameStart(a, b []byte) int {
	n := min(len(a), len(b), maxSame)
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// maxTable bounds a table of size ranks, and the length of any.
func maxTable(size int) int {
	return int(min(int64(size)*(tableEntry+MaxValue), 1<<31-1))
}

// tableEntry is the most that a table has of a value beside its bytes: a run of 1, 3 bytes of
// length.
const tableEntry = 5

// entry is one value of a table.
type entry struct {
	run, same int
	rest      []byte
}

// nextEntry reads the first entry of data, and returns what follows it. Before it stood a value of
// so many bytes.
func nextEntry(data []byte, before int) (e entry, more []byte, ok bool) {
	run, n := binary.Uvarint(data)
	if n <= 0 || run == 0 || run > 1<<31-1 || n >= len(data) {
		return e, nil, false
	}
	e.run, e.same = int(run), int(data[n])
	data = data[n+1:]
	rest, n := binary.Uvarint(data)
	if n <= 0 || rest > uint64(len(data)-n) || e.same > before || e.same+int(rest) > MaxValue {
		return e, nil, false
	}
	end := n + int(rest)
	e.rest = data[n:end:end]
	return e, data[end:], true
}

// parseTable returns the size values in data. Those that share nothing with the one before are not
// copied, and ranks in a row that say the same have one value. What is allocated is bounded by the
// bytes that came, and by size.
func parseTable(data []byte, size int) ([][]byte, error) {
	ranks, before, made := 0, 0, 0
	for in := data; len(in) > 0; {
		e, more, ok := nextEntry(in, before)
		if !ok || e.run > size-ranks {
			return nil, errFrame
		}
		ranks += e.run
		if before = e.same + len(e.rest); e.same > 0 {
			made += before
		}
		in = more
	}
	if ranks != size {
		return nil, errFrame
	}
	values, room := make([][]byte, 0, size), make([]byte, 0, made)
	var last []byte
	for in := data; len(in) > 0; {
		e, more, _ := nextEntry(in, len(last))
		in = more
		v := e.rest
		if e.same > 0 {
			at := len(room)
			room = append(append(room, last[:e.same]...), e.rest...)
			v = room[at:len(room):len(room)]
		}
		for range e.run {
			values = append(values, v)
		}
		last = v
	}
	return values, nil
}
