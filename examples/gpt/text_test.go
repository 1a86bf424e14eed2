package main

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// tokensOf are n tokens of a vocabulary, as a language has them: the small numbers more often.
func tokensOf(n, vocab int) (list []int) {
	x := uint64(1)
	for range n {
		x = x*6364136223846793005 + 1442695040888963407
		v := int(x>>33) % vocab
		list = append(list, v*v/vocab)
	}
	return list
}

// What numpy and other programs write in other types is refused with what to do, and not read as garbage; nanoGPT's files and llm.c's
// are read.
func TestBinary(t *testing.T) {
	le, be := binary.LittleEndian, binary.BigEndian
	write := func(list []int, add func(b []byte, v int) []byte) (b []byte) {
		for _, v := range list {
			b = add(b, v)
		}
		return b
	}
	u16 := func(b []byte, v int) []byte { return le.AppendUint16(b, uint16(v)) }
	llmc := func(version, n uint32) []byte {
		head := make([]byte, 1024)
		le.PutUint32(head, 20240520)
		le.PutUint32(head[4:], version)
		le.PutUint32(head[8:], n)
		return head
	}
	for _, vocab := range []int{65, 300, 5000, 50257, 65536} {
		list := tokensOf(4000, vocab)
		good := write(list, u16)
		for name, tc := range map[string]struct {
			raw  []byte
			says string // "": it is read
		}{
			"nanoGPT":          {good, ""},
			"llm.c":            {slices.Concat(llmc(1, 4000), good), ""},
			"llm.c, version 7": {slices.Concat(llmc(7, 4000), good), "has the header of llm.c, version 7"},
			"llm.c, short":     {slices.Concat(llmc(1, 4000), good[2:]), "has the header of llm.c"},
			"int32":            {write(list, func(b []byte, v int) []byte { return le.AppendUint32(b, uint32(v)) }), "int32 or int64"},
			"int64":            {write(list, func(b []byte, v int) []byte { return le.AppendUint64(b, uint64(v)) }), "int32 or int64"},
			"big-endian":       {write(list, func(b []byte, v int) []byte { return be.AppendUint16(b, uint16(v)) }), "big-endian"},
			"big-endian int32": {write(list, func(b []byte, v int) []byte { return be.AppendUint32(b, uint32(v)) }), "int32 or int64"},
			"numpy.save":       {slices.Concat([]byte("\x93NUMPY\x01\x00v\x00{'descr': '<u2'}"), good), "numpy.save"},
			"an odd number":    {good[1:], "not a whole number of uint16"},
		} {
			if vocab == 65536 && name == "big-endian" {
				continue // any two bytes are a token of either order
			}
			x, err := newText("a.bin", tc.raw, 16, 0)
			if tc.says != "" {
				require.ErrorContains(t, err, tc.says, "%s with %d tokens", name, vocab)
				continue
			}
			require.NoError(t, err, "%s with %d tokens", name, vocab)
			require.Equal(t, slices.Max(list)+1, x.vocab)
			distinct := slices.Clone(list)
			slices.Sort(distinct)
			require.Equal(t, len(slices.Compact(distinct)), x.different)
			require.Equal(t, 4000, x.n)
			for i, v := range x.rows(nil, 100, 50) {
				require.EqualValues(t, list[100+i], v)
			}
		}
	}
}

// Data take the memory of the file, and no more.
func TestDataMemory(t *testing.T) {
	raw := make([]byte, 8<<20)
	for i := range raw {
		raw[i] = byte(i % 200)
	}
	for _, name := range []string{"a.txt", "a.bin"} {
		x, err := newText(name, raw, 16, 0)
		require.NoError(t, err)
		x.batch(1, 1, 8, 0, 8, 16)
		n := testing.AllocsPerRun(3, func() { _, _ = newText(name, raw, 16, 0) })
		require.Less(t, n, 20.)
		require.Same(t, &raw[0], &x.raw[0], "it is the file itself")
	}
}
