package join

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl/internal/call"
)

const someSettings = "version 1;Check=async;Timeout=1s"

func TestHello(t *testing.T) {
	a, b := newHello(someSettings, "x"), newHello(someSettings, "x")
	for _, h := range []hello{a, b} {
		assert.True(t, h.valid())
		assert.Equal(t, helloMagic, string(h[:8]))
		assert.Equal(t, someSettings, h.settings())
		assert.Len(t, h, helloHead+len(someSettings))
	}
	assert.Equal(t, a.options(), b.options())
	assert.NotEqual(t, a.seed(), b.seed())
	assert.Equal(t, a.host(), b.host())
	assert.Equal(t, a.process(), b.process())
	assert.NotEqual(t, a.host(), newHello(someSettings, "y").host())
	assert.NotEqual(t, a.host(), newHello(someSettings, "").host())
	assert.NotEqual(t, a.options(), newHello("other", "x").options())
}

func TestCompare(t *testing.T) {
	h := func(s string) []byte { return newHello(s, "") }
	good := h(someSettings)
	old := bytes.Clone(good)
	old[7]++
	for _, tc := range []struct {
		name string
		all  [][]byte
		size int
		code call.Code // 0: agreed
		peer int
		want string
	}{
		{"alone", [][]byte{good}, 1, 0, 0, ""},
		{"agreed", [][]byte{good, h(someSettings), h(someSettings)}, 3, 0, 0, ""},
		{"too few", [][]byte{good}, 2, call.Backend, -1, "the bootstrap gathered 1 values from 2 ranks"},
		{"too many", [][]byte{good, good}, 1, call.Backend, -1, "the bootstrap gathered 2 values from 1 ranks"},
		{"empty", [][]byte{good, nil}, 2, call.Version, 1, "rank 1 runs something else than this goccl, or another version of it"},
		{"short", [][]byte{good, good[:helloHead-1]}, 2, call.Version, 1, "rank 1 runs something else than this goccl, or another version of it"},
		{"rank 0 is other", [][]byte{old, good}, 2, call.Version, 0, "rank 0 runs something else than this goccl, or another version of it"},
		{"other wire", [][]byte{good, good, old}, 3, call.Version, 2, "rank 2 runs something else than this goccl, or another version of it"},
		{"version", [][]byte{good, h("version 2;Check=async;Timeout=1s")}, 2, call.Version, 1, "rank 1 differs from rank 0: version 2 there, version 1 on rank 0"},
		{"last field", [][]byte{good, good, h("version 1;Check=async;Timeout=2s")}, 3, call.Version, 2, "rank 2 differs from rank 0: Timeout=2s there, Timeout=1s on rank 0"},
		{"more fields", [][]byte{good, h(someSettings + ";X=1")}, 2, call.Version, 1, "rank 1 differs from rank 0: a different number of options"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := compare(tc.all, tc.size)
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

func FuzzHello(f *testing.F) {
	good := []byte(newHello(someSettings, ""))
	f.Add(good, good)
	f.Add(good, []byte(newHello("version 2", "")))
	f.Add(good, good[:helloHead])
	f.Add([]byte("GET / HTTP/1.1\r\n"), []byte{})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		all := [][]byte{a, b}
		fault := compare(all, 2)
		if fault == nil {
			// What is agreed upon can be used.
			if !hello(a).valid() || !hello(b).valid() || !bytes.Equal(hello(a).options(), hello(b).options()) {
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
