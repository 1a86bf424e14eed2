package tcp

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMakeKey(t *testing.T) {
	require.Equal(t, Key{Comm: 7, Stream: 1, A: 2, B: 5}, MakeKey(7, 1, 2, 5))
	require.Equal(t, MakeKey(7, 1, 2, 5), MakeKey(7, 1, 5, 2))
	require.Equal(t, "stream 1 of ranks 2 and 5 in communicator 0x7", MakeKey(7, 1, 5, 2).String())
}

func TestKeyEnd(t *testing.T) {
	for _, tc := range []struct {
		name string
		key  Key
		self uint32
		err  string
	}{
		{name: "lower", key: MakeKey(1, 0, 2, 5), self: 2},
		{name: "higher", key: MakeKey(1, 0, 2, 5), self: 5},
		{name: "stranger", key: MakeKey(1, 0, 2, 5), self: 3, err: "rank 3 is neither of them"},
		{name: "to itself", key: MakeKey(1, 0, 2, 2), self: 2, err: "a key has A < B"},
		{name: "wrong order", key: Key{A: 5, B: 2}, self: 2, err: "a key has A < B"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			id, err := tc.key.end(tc.self)
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, endID{tc.key, tc.self}, id)
			require.Equal(t, tc.key.A+tc.key.B-tc.self, id.peer().self)
			require.Equal(t, id, id.peer().peer())
		})
	}
}

func TestHello(t *testing.T) {
	id, err := MakeKey(0x0102030405060708, 9, 10, 11).end(11)
	require.NoError(t, err)
	b := id.hello()
	require.Equal(t, []byte{1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 9, 0, 0, 0, 10, 0, 0, 0, 11, 0, 0, 0, 11}, b)
	back, err := parseHello(b)
	require.NoError(t, err)
	require.Equal(t, id, back)

	for _, n := range []int{0, helloLen - 1, helloLen + 1} {
		_, err := parseHello(make([]byte, n))
		require.ErrorContains(t, err, "a hello of")
	}
}

func FuzzHello(f *testing.F) {
	f.Add(endID{MakeKey(1, 2, 3, 4), 3}.hello())
	f.Add(make([]byte, helloLen))
	f.Add([]byte("GET / HTTP/1.1\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		id, err := parseHello(b)
		if err != nil {
			return
		}
		if id.A >= id.B || id.self != id.A && id.self != id.B {
			t.Fatalf("%v passed", id)
		}
		if !bytes.Equal(id.hello(), b) {
			t.Fatalf("%x reads as %v, which is %x", b, id, id.hello())
		}
	})
}
