package op

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Calls that differ in what ranks must agree on have different hashes; what is each
// rank's own does not count.
func TestSeal(t *testing.T) {
	base := Call{Head: Head{Record: Record{Kind: AllReduce, Type: Float32, Op: 0, Count: 100, Root: -1, Seq: 1}}}
	seen := map[uint32]string{}
	hash := func(name string, change func(k *Call)) uint32 {
		k := base
		change(&k)
		k.Seal()
		assert.NotZero(t, k.Hash, name)
		return k.Hash
	}
	for name, change := range map[string]func(k *Call){
		"base":    func(*Call) {},
		"kind":    func(k *Call) { k.Kind = Reduce },
		"type":    func(k *Call) { k.Type = 5 },
		"op":      func(k *Call) { k.Op = 3 },
		"count":   func(k *Call) { k.Count = 101 },
		"root":    func(k *Call) { k.Root = 0 },
		"counts":  func(k *Call) { k.Kind, k.DC = AllGatherV, []int{60, 40} },
		"counts'": func(k *Call) { k.Kind, k.DC = AllGatherV, []int{40, 60} },
	} {
		h := hash(name, change)
		assert.Empty(t, seen[h], "%s has the hash of another", name)
		seen[h] = name
	}
	want := hash("base", func(*Call) {})
	assert.Equal(t, want, hash("seq", func(k *Call) { k.Seq = 9 }))
	assert.Equal(t, want, hash("memory", func(k *Call) { k.Dst = make([]byte, 8) }))
	assert.Equal(t, hash("own counts", func(k *Call) { k.Kind, k.DC = AllToAllV, []int{1} }),
		hash("own counts'", func(k *Call) { k.Kind, k.DC = AllToAllV, []int{2} }))
}

func TestBlocks(t *testing.T) {
	even := Call{Head: Head{Record: Record{Count: 3}}, Elem: 4}
	from, to := even.Block(2)
	assert.Equal(t, []int{24, 36, 12, 12}, []int{from, to, even.BlockLen(0), even.Largest()})

	odd := Call{Elem: 2, DC: []int{2, 0, 5}}
	odd.Offsets = []int{0, 4, 4, 14}
	assert.Equal(t, []int{4, 0, 10, 10}, []int{odd.BlockLen(0), odd.BlockLen(1), odd.BlockLen(2), odd.Largest()})

	v := make([]byte, 14)
	for i := range v {
		v[i] = byte(i)
	}
	assert.Equal(t, []byte{4, 5, 6, 7}, odd.Piece(v, 2, 0, 4))
	assert.Equal(t, []byte{12, 13}, odd.Piece(v, 2, 8, 4)) // the rest
	assert.Empty(t, odd.Piece(v, 2, 12, 4))                // beyond it
	assert.Empty(t, odd.Piece(v, 1, 0, 4))
}
