package region

import (
	"reflect"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl/internal/shm"
)

// A word is what a method of Region returns.
type word[F any] struct {
	name string
	at   F
}

// methods are those of g of type F, all of them, so a test of words misses none.
func methods[F any](g *Region) (all []word[F]) {
	v := reflect.ValueOf(g)
	for i := range v.NumMethod() {
		if f, is := v.Method(i).Interface().(F); is {
			all = append(all, word[F]{v.Type().Method(i).Name, f})
		}
	}
	return all
}

func wordsOf(g *Region) []word[func() *atomic.Uint64] { return methods[func() *atomic.Uint64](g) }
func rankWordsOf(g *Region) []word[func(int) *atomic.Uint64] {
	return methods[func(int) *atomic.Uint64](g)
}

// Every field of the words is what one method returns, or is part of a draft, or free: TestRegionLayout shows that no two methods
// return one.
func TestWordsHaveAMethodEach(t *testing.T) {
	g := New(0, shm.Aligned(Bytes(3)), 3)
	count := func(of reflect.Type) (n int) {
		for i := range of.NumField() {
			if name := of.Field(i).Name; name != "_" && name != "draft" {
				n++
			}
		}
		return n
	}
	assert.Len(t, wordsOf(g), count(reflect.TypeFor[common]()))
	assert.Len(t, rankWordsOf(g), count(reflect.TypeFor[stands]())+count(reflect.TypeFor[makes]())+count(reflect.TypeFor[calls]()))
}
