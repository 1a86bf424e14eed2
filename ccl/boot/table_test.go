package boot

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTable(t *testing.T) {
	values := [][]byte{[]byte("a"), {}, []byte("ccc")}
	f, err := readFrame(bytes.NewReader(tableFrame(values)), maxTable(3))
	require.NoError(t, err)
	require.Equal(t, frameTable, f.kind)
	got, err := parseTable(f.data, 3)
	require.NoError(t, err)
	require.Equal(t, values, got)
	for name, tc := range map[string]struct {
		data []byte
		size int
	}{
		"one more":                {f.data, 2},
		"one less":                {f.data, 4},
		"cut off":                 {f.data[:len(f.data)-1], 3},
		"of many ranks":           {f.data, 1 << 30},
		"nothing":                 {nil, 1},
		"a long value":            {[]byte{1, 0, 255, 255, 255, 255, 1}, 1},
		"a value beyond the most": {append([]byte{1, 0, 129, 128, 4}, make([]byte, MaxValue+1)...), 1},
		"a run of none":           {[]byte{0, 0, 0}, 1},
		"a run beyond the end":    {[]byte{2, 0, 0}, 1},
		"a run without end":       {bytes.Repeat([]byte{255}, 12), 1},
		"more of the one before":  {[]byte{1, 0, 1, 'a', 1, 2, 0}, 2},
		"of none before":          {[]byte{1, 1, 0}, 1},
		"only a run":              {[]byte{1}, 1},
		"no length":               {[]byte{1, 0}, 1},
	} {
		_, err := parseTable(tc.data, tc.size)
		require.ErrorIs(t, err, errFrame, name)
	}
}

// What the values have in common with those before them goes over the wire once.
func TestTablePacks(t *testing.T) {
	long := bytes.Repeat([]byte{'x'}, 1000)
	for _, tc := range []struct {
		name   string
		values [][]byte
		want   string
	}{
		{"all the same", [][]byte{{7}, {7}, {7}}, "\x03\x00\x01\x07"},
		{"nothing said", [][]byte{{}, {}}, "\x02\x00\x00"},
		{"a beginning", [][]byte{[]byte("abc"), []byte("abd"), []byte("ab"), []byte("abzz")}, "\x01\x00\x03abc" + "\x01\x02\x01d" + "\x01\x02\x00" + "\x01\x02\x02zz"},
		{"the same again later", [][]byte{{1}, {2}, {2}, {1}}, "\x01\x00\x01\x01" + "\x02\x00\x01\x02" + "\x01\x00\x01\x01"},
		{"a long beginning", [][]byte{long, append(bytes.Clone(long), 'y')}, "\x01\x00\xe8\x07" + string(long) + "\x01\xff\xea\x05" + string(long[255:]) + "y"},
	} {
		b := tableFrame(tc.values)
		require.Equal(t, tc.want, string(b[frameHead:]), tc.name)
		got, err := parseTable(b[frameHead:], len(tc.values))
		require.NoError(t, err, tc.name)
		require.Equal(t, tc.values, got, tc.name)
	}
}

// One long value in the middle of a large job does not make the table large.
func TestTableTakesLittle(t *testing.T) {
	values := make([][]byte, 1001)
	values[500] = make([]byte, MaxValue)
	require.LessOrEqual(t, cap(tableFrame(values)), 2*(MaxValue+len(values)*tableEntry))
}

// Any values come back as they were, and a table is never larger than is announced.
func TestTableOfAnything(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		values := make([][]byte, 1+random.IntN(20))
		size := 0
		for r := range values {
			v := make([]byte, random.IntN(600))
			if r > 0 && random.IntN(3) > 0 {
				v = bytes.Clone(values[r-1])
			}
			for range random.IntN(3) {
				if len(v) > 0 {
					v[random.IntN(len(v))]++
				}
			}
			values[r] = v
			size += tableEntry + len(v)
		}
		b := tableFrame(values)
		require.LessOrEqual(t, len(b)-frameHead, size)
		got, err := parseTable(b[frameHead:], len(values))
		require.NoError(t, err)
		require.Equal(t, values, got)
	}
}

// What a table makes a process allocate is bounded by the bytes that come: at most 86 times as
// many, since an entry of 3 bytes repeats 255 at most.
func TestTableGrowsLittle(t *testing.T) {
	data := append([]byte{1, 0, 255, 1}, bytes.Repeat([]byte{'x'}, 255)...)
	const n = 1000
	for range n {
		data = append(data, 1, 255, 0)
	}
	allocated := testing.Benchmark(func(b *testing.B) {
		for range b.N {
			values, err := parseTable(data, n+1)
			require.NoError(b, err)
			require.Len(b, values[n], 255)
		}
	}).AllocedBytesPerOp()
	require.Less(t, allocated, int64(86*len(data)+n*32))
}
