package reduce

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/goccl/goccl/internal/op"
)

// level is one implementation of everything here.
type level struct {
	name   string
	isa    isa // of weigh
	reduce [op.Types][op.Ops]Func
	stream [op.Types][op.Ops]Func
	both   [op.Types]Both // sums; nil where there is none
	scale  [op.Types]func(dst unsafe.Pointer, n int, ranks int)
	copy   func(dst, src unsafe.Pointer, n int)
	sumAll [op.Types]SumAll // of the floats of 16 and 8 bits

	encode             [blockCodes]blockEncoder
	decode, addDecoded [blockCodes]blockDecoder
}

// isa is an instruction set that weigh has kernels for; 0 is none.
type isa uint8

// levels are those that this CPU runs, best first. The last is generic.
var levels = composed(append(vector(), generic))

// chosen is the level in use. It changes only in tests, by Force.
var chosen = levels[0]

// Levels are the names of the levels that this CPU runs, best first.
func Levels() []string {
	names := make([]string, len(levels))
	for i, l := range levels {
		names[i] = l.name
	}
	return names
}

// Force makes For, ForStream, Scale and Stream use one of Levels until restore is
// called. It is for tests, and must not run together with any of these functions.
// Functions that they returned before stay what they were.
func Force(name string) (restore func(), err error) {
	for _, l := range levels {
		if l.name == name {
			before := chosen
			chosen = l
			return func() { chosen = before }, nil
		}
	}
	return nil, fmt.Errorf("reduce: no kernels %q on this CPU; it has %s", name, strings.Join(Levels(), ", "))
}
