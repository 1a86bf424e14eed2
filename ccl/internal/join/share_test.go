package join

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/internal/auth"
)

// helloOf is rank r's, of a process on a host, each named by a byte.
func helloOf(r int, host, process byte) []byte {
	b := newHello(nil, "", "", r, false)
	for i := range 16 {
		b[16+i], b[32+i] = host, process
	}
	return b
}

// hellos reads "9a 7b", the host and the process of each rank.
func hellos(text string) (all [][]byte) {
	for r, p := range strings.Fields(text) {
		all = append(all, helloOf(r, p[0], p[1]))
	}
	return all
}

func TestHostsOf(t *testing.T) {
	all := hellos("9a 7b 9c 9c 7d")
	assert.Equal(t, []int{0, 1, 0, 0, 1}, hostsOf(all, nil))
	assert.Equal(t, []int{0, 1, 0, 0, 1}, hostsOf(all, make([]uint8, 5)))
	// The process of ranks 2 and 3 could not share memory: a host of its own.
	assert.Equal(t, []int{0, 1, 2, 2, 1}, hostsOf(all, []uint8{0, 0, 1, 1, 0}))
	// Those that could not try among themselves, and then no more.
	assert.Equal(t, []int{0, 1, 0, 0, 1}, hostsOf(all, []uint8{1, 1, 1, 1, 1}))
	assert.Equal(t, []int{0, 1, 2, 2, 3}, hostsOf(all, []uint8{alone, alone, alone, alone, alone}))
}

// Memory is shared where a host has several processes.
func TestAnyShared(t *testing.T) {
	for text, want := range map[string]bool{"9a": false, "9a 9a": false, "9a 7b": false, "9a 9b": true, "9a 7b 7b 7c": true} {
		all := hellos(text)
		assert.Equal(t, want, anyShared(all, hostsOf(all, nil)), text)
	}
}

// Processes that could not take the memory try again among themselves. One that could not make it tries no more, and the
// others of its host try again without it.
func TestMarkApart(t *testing.T) {
	said := func(text string) (all [][]byte) { // + or - by rank
		for _, c := range text {
			all = append(all, []byte{map[rune]byte{'+': well, '-': unshared}[c]})
		}
		return all
	}
	nodeOf := []int{0, 0, 1, 1}
	for _, tc := range []struct {
		said    string
		offered bool
		before  []uint8
		want    []uint8
		again   bool
	}{
		{"++++", true, []uint8{0, 0, 0, 0}, []uint8{0, 0, 0, 0}, false},
		{"++++", false, []uint8{0, 1, 0, 0}, []uint8{0, 1, 0, 0}, false},
		{"+-++", false, []uint8{0, 0, 0, 0}, []uint8{0, 1, 0, 0}, true},
		{"+-+-", false, []uint8{0, 1, 0, 0}, []uint8{0, 2, 0, 1}, true},
		{"-+++", true, []uint8{0, 0, 0, 0}, []uint8{alone, 1, 0, 0}, true},
		{"++-+", true, []uint8{0, 0, 1, 1}, []uint8{0, 0, alone, 2}, true},
		{"--++", true, []uint8{0, 0, 0, 0}, []uint8{alone, alone, 0, 0}, true},
	} {
		apart := append([]uint8(nil), tc.before...)
		assert.Equal(t, tc.again, markApart(apart, nodeOf, said(tc.said), tc.offered), tc.said)
		assert.Equal(t, tc.want, apart, "%s after %v", tc.said, tc.before)
	}
}

// The lowest rank of a host says why its ranks do not share memory, and only the first reason.
func TestWhyApart(t *testing.T) {
	all := hellos("9a 7b 9c 7d")
	said := [][]byte{{well}, {well}, append([]byte{unshared}, "no memory"...), append([]byte{unshared}, "no door"...)}
	for rank, want := range []string{"rank 2: no memory", "rank 3: no door", "", ""} {
		r := &exchanges{all: all, rank: rank}
		assert.Equal(t, want, r.whyApart(said, ""), rank)
		assert.Equal(t, "before", r.whyApart(said, "before"), rank)
		assert.Empty(t, r.whyApart([][]byte{{well}, {well}, {well}, {well}}, ""), rank)
	}
}

// What names and opens the server of a host's memory is another for each job, host and try.
func TestHostKeys(t *testing.T) {
	seen := map[string]string{}
	all := hellos("9a 7b")
	for _, job := range [][][]byte{all, hellos("9a 7b")} { // whose seeds differ
		for node := range 2 {
			for try := range shareTries {
				for _, secret := range []string{"", "s"} {
					at := fmt.Sprintf("node %d, try %d, secret %q", node, try, secret)
					r := &exchanges{secret: auth.Given([]byte(secret)), all: job}
					key := string(hostKey(siteOf(node), r, try))
					assert.Equal(t, key, string(hostKey(siteOf(node), r, try)), at)
					assert.Empty(t, seen[key], at)
					seen[key] = at
				}
			}
		}
	}
}
