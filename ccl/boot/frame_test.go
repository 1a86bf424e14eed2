package boot

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFrame(t *testing.T) {
	for _, f := range []frame{
		{kind: frameJoin, rank: 0, data: []byte{}},
		{kind: frameValue, rank: 1<<31 - 1, data: []byte("value")},
		{kind: frameTable, rank: 0, data: bytes.Repeat([]byte("x"), 3*MaxValue)},
	} {
		got, err := readFrame(bytes.NewReader(f.encode()), 4*MaxValue)
		require.NoError(t, err)
		require.Equal(t, f, got)
		_, err = readFrame(bytes.NewReader(f.encode()[:len(f.encode())-1]), 4*MaxValue)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	}
	for name, b := range map[string][]byte{
		"kind 0":        frame{}.encode(),
		"kind 8":        frame{kind: 8}.encode(),
		"negative rank": frame{kind: frameJoin, rank: -1}.encode(),
		"too long":      frame{kind: frameJoin, data: make([]byte, 101)}.encode(),
	} {
		_, err := readFrame(bytes.NewReader(b), 100)
		require.ErrorIs(t, err, errFrame, name)
	}
	_, err := readFrame(bytes.NewReader(nil), 100)
	require.Equal(t, io.EOF, err)
}

// TestFrameLies is a length that promises far more than comes: nothing is allocated
// for the promise.
func TestFrameLies(t *testing.T) {
	b := frame{kind: frameTable}.encode()
	binary.BigEndian.PutUint32(b[5:], 1<<31-1)
	allocated := testing.Benchmark(func(bench *testing.B) {
		for range bench.N {
			_, err := readFrame(bytes.NewReader(b), 1<<31-1)
			require.ErrorIs(bench, err, io.ErrUnexpectedEOF)
		}
	}).AllocedBytesPerOp()
	require.Less(t, allocated, int64(MaxValue))
}

func TestJoin(t *testing.T) {
	j := join{Protocol: 1, Rank: 3, Size: 4, Left: 5, PID: 6, Host: "h"}
	got, err := parseJoin(j.encode())
	require.NoError(t, err)
	require.Equal(t, j, got)
	require.Equal(t, "host h, pid 6", j.String())
	j.Door, j.Astray, j.To = 7, true, &way{Rank: 1, PID: 2, Host: "i", Addr: netip.MustParseAddrPort("10.0.0.1:8")}
	got, err = parseJoin(j.encode())
	require.NoError(t, err)
	require.Equal(t, j, got)
	j.Host = string(make([]byte, 300))
	j.To.Host = j.Host
	got, err = parseJoin(j.encode())
	require.NoError(t, err)
	require.Len(t, got.Host, 255)
	require.Len(t, got.To.Host, 255)
	for _, bad := range []string{"", "{}", "[]", `{"rank":-1,"size":2}`, `{"rank":0,"size":0}`, `{"rank":4294967296,"size":4294967297}`,
		`{"rank":1,"size":2,"to":{}}`, `{"rank":1,"size":2,"to":{"rank":-1,"addr":"10.0.0.1:8"}}`, `{"rank":1,"size":2,"to":{"addr":"nowhere"}}`} {
		_, err := parseJoin([]byte(bad))
		require.ErrorIs(t, err, errFrame, bad)
	}
}

func TestVerdict(t *testing.T) {
	v := verdict{Code: Timeout, Peer: 2, Missing: []int{2, 3}, Text: "late", Addr: netip.MustParseAddr("10.0.0.1"), Secret: []byte(sesame), Taken: 1}
	f, err := readFrame(bytes.NewReader(v.frame()), maxVerdict)
	require.NoError(t, err)
	got, err := parseVerdict(f.data)
	require.NoError(t, err)
	require.Equal(t, v, got)
	require.Equal(t, &Error{Code: Timeout, Rank: -1, Size: -1, Peer: 2, Missing: []int{2, 3}, Text: "late"}, got.error())
	require.Nil(t, verdict{}.error())

	// One that lists too many to send says it without the list.
	v.Missing = make([]int, maxVerdict)
	f, err = readFrame(bytes.NewReader(v.frame()), maxVerdict)
	require.NoError(t, err)
	got, err = parseVerdict(f.data)
	require.NoError(t, err)
	require.Equal(t, "late", got.Text)
	require.Empty(t, got.Missing)
}

// What another rank says is shown without control characters.
func TestTextsArePlain(t *testing.T) {
	j := selfJoin(1, 2)
	j.Host = "h\x1b[2J"
	got, err := parseJoin(j.encode())
	require.NoError(t, err)
	require.Equal(t, `h\x1b[2J`, got.Host)
	f, err := readFrame(bytes.NewReader(verdict{Code: Lost, Text: "a\nb", Secret: []byte{0x1b}}.frame()), maxVerdict)
	require.NoError(t, err)
	v, err := parseVerdict(f.data)
	require.NoError(t, err)
	require.Equal(t, `a\nb`, v.Text)
	require.Equal(t, []byte{0x1b}, v.Secret)
	n, err := parseRootAddr(rootAddr{Addrs: []string{"\x1b:1"}}.encode())
	require.NoError(t, err)
	require.Equal(t, []string{`\x1b:1`}, n.Addrs)
}

func TestMilliseconds(t *testing.T) {
	for d, want := range map[time.Duration]uint32{-time.Second: 1, 0: 1, time.Microsecond: 1, time.Second: 1000, 1 << 62: 1<<32 - 1} {
		require.Equal(t, want, milliseconds(d))
	}
}

func FuzzHello(f *testing.F) {
	f.Add(selfJoin(1, 2).encode())
	f.Add(joinOf(1, 2).encode())
	f.Add(verdict{Code: Lost, Peer: 1, Text: "x"}.frame())
	f.Add(tableFrame([][]byte{{1}, {2, 3}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if j, err := parseJoin(b); err == nil {
			again, err := parseJoin(j.encode())
			require.NoError(t, err)
			require.Equal(t, j.Rank, again.Rank)
		}
		parseVerdict(b)
		if values, err := parseTable(b, 3); err == nil {
			again, err := parseTable(tableFrame(values)[frameHead:], 3)
			require.NoError(t, err)
			require.Equal(t, values, again)
		}
		if fr, err := readFrame(bytes.NewReader(b), 1<<20); err == nil {
			require.True(t, bytes.HasPrefix(b, fr.encode()))
		}
	})
}
