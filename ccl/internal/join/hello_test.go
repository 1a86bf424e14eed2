package join

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl/internal/call"
)

const someSettings = "version 1;Check=async;Timeout=1s"

func TestHello(t *testing.T) {
	a, b := newHello(nil, someSettings, "x", 0, false), newHello(nil, someSettings, "x", 0, false)
	for _, h := range []hello{a, b} {
		assert.True(t, h.valid(0))
		assert.False(t, h.valid(1))
		assert.Equal(t, helloMagic, string(h[:8]))
		assert.Len(t, h, helloBytes+rootBytes)
	}
	assert.Equal(t, a.options(), b.options())
	assert.NotEqual(t, a.seed(), b.seed())
	assert.Equal(t, a.host(), b.host())
	assert.Equal(t, a.process(), b.process())
	assert.Equal(t, a[:helloBytes], newHello(nil, someSettings, "x", 1, false), "ranks of one process on one host say the same")
	assert.True(t, newHello(nil, someSettings, "x", 1, false).valid(7))
	assert.NotEqual(t, a.host(), newHello(nil, someSettings, "y", 1, false).host())
	assert.NotEqual(t, a.host(), newHello(nil, someSettings, "", 1, false).host())
	assert.NotEqual(t, a.options(), newHello(nil, "other", "x", 1, false).options())
}

func TestCompare(t *testing.T) {
	first := []byte(newHello(nil, someSettings, "", 0, false))
	good, other := []byte(newHello(nil, someSettings, "", 1, false)), []byte(newHello(nil, "other", "", 1, false))
	old := bytes.Clone(good)
	old[7]++
	oldFirst := bytes.Clone(first)
	oldFirst[7]++
	for _, tc := range []struct {
		name    string
		all     [][]byte
		size    int
		differs int
		code    call.Code // 0: none is another goccl's
		peer    int
		want    string
	}{
		{"alone", [][]byte{first}, 1, -1, 0, 0, ""},
		{"agreed", [][]byte{first, good, good}, 3, -1, 0, 0, ""},
		{"too few", [][]byte{first}, 2, -1, call.Backend, -1, "the bootstrap gathered 1 values from 2 ranks"},
		{"too many", [][]byte{first, good}, 1, -1, call.Backend, -1, "the bootstrap gathered 2 values from 1 ranks"},
		{"empty", [][]byte{first, nil}, 2, -1, call.Version, 1, "rank 1 runs something else than this goccl, or another version of it"},
		{"short", [][]byte{first, good[:helloBytes-1]}, 2, -1, call.Version, 1, "rank 1 runs something else than this goccl, or another version of it"},
		{"long", [][]byte{first, first}, 2, -1, call.Version, 1, "rank 1 runs something else than this goccl, or another version of it"},
		{"no seed", [][]byte{good, good}, 2, -1, call.Version, 0, "rank 0 runs something else than this goccl, or another version of it"},
		{"rank 0 is other", [][]byte{oldFirst, good}, 2, -1, call.Version, 0, "rank 0 runs something else than this goccl, or another version of it"},
		{"other wire", [][]byte{first, good, old}, 3, -1, call.Version, 2, "rank 2 runs something else than this goccl, or another version of it"},
		{"other options", [][]byte{first, good, other, other}, 4, 2, 0, 0, ""},
		{"an old one counts before options", [][]byte{first, other, old}, 3, -1, call.Version, 2, "rank 2 runs something else than this goccl, or another version of it"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			differs, f := compare(tc.all, tc.size)
			assert.Equal(t, tc.differs, differs)
			if tc.code == 0 {
				assert.Nil(t, f)
				return
			}
			if assert.NotNil(t, f) {
				assert.Equal(t, tc.code, f.Code)
				assert.Equal(t, tc.peer, f.Peer)
				assert.EqualError(t, f, tc.want)
			}
		})
	}
}

// told is a bootstrap of three ranks whose allgather notes what this rank says.
type told struct {
	rank int
	said [][]byte
	err  error
	mine []byte
}

func (b *told) Rank() int { return b.rank }
func (b *told) Size() int { return 3 }
func (b *told) AllGather(_ context.Context, mine []byte) ([][]byte, error) {
	b.mine = mine
	return b.said, b.err
}

// Only rank 0 and the rank that differs say their options, and all ranks name the one that differs.
func TestDiffer(t *testing.T) {
	for _, tc := range []struct {
		name, theirs string
		said         int
		err          error
		want         string
	}{
		{"version", "version 2;Check=async;Timeout=1s", 3, nil, "rank 2 differs from rank 0: version 2 there, version 1 on rank 0"},
		{"last field", "version 1;Check=async;Timeout=2s", 3, nil, "rank 2 differs from rank 0: Timeout=2s there, Timeout=1s on rank 0"},
		{"more fields", someSettings + ";X=1", 3, nil, "rank 2 differs from rank 0: a different number of options"},
		{"no answer", "", 0, assert.AnError, "rank 2 differs from rank 0 in its version or options, and in which was not learned: " + assert.AnError.Error()},
		{"too few", "", 2, nil, "the bootstrap gathered 2 values from 3 ranks"},
	} {
		for rank, mine := range []string{someSettings, someSettings, tc.theirs} {
			b := &told{rank: rank, said: [][]byte{[]byte(someSettings), nil, []byte(tc.theirs)}[:tc.said], err: tc.err}
			f := differ(t.Context(), b, 2, mine)
			assert.EqualError(t, f, tc.want, tc.name)
			if rank == 1 {
				assert.Empty(t, b.mine, tc.name)
			} else {
				assert.Equal(t, mine, string(b.mine), tc.name)
			}
		}
	}
}

func FuzzHello(f *testing.F) {
	first, good := []byte(newHello(nil, someSettings, "", 0, false)), []byte(newHello(nil, someSettings, "", 1, false))
	f.Add(first, good)
	f.Add(first, []byte(newHello(nil, "version 2", "", 1, false)))
	f.Add(first, good[:helloBytes-1])
	f.Add(good, first)
	f.Add([]byte("GET / HTTP/1.1\r\n"), []byte{})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		all := [][]byte{a, b}
		differs, fault := compare(all, 2)
		if fault == nil {
			// What is agreed upon can be used.
			if !hello(a).valid(0) || !hello(b).valid(1) || (differs < 0) != bytes.Equal(hello(a).options(), hello(b).options()) {
				t.Fatal("agreed, but different")
			}
			if hosts := hostsOf(all, nil); hosts[0] != 0 || hosts[1] > 1 {
				t.Fatalf("hosts %v", hosts)
			}
			return
		}
		if fault.Code != call.Version || fault.Peer < 0 || fault.Peer > 1 || fault.Err == nil {
			t.Fatalf("%+v", fault)
		}
	})
}
