package op

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestOperators(t *testing.T) {
	for o, name := range map[Op]string{Sum: "sum", Prod: "prod", Min: "min", Max: "max", Avg: "avg", Ops: "none", Scaled - 1: "none", Scaled: "mulsum", 255: "mulsum"} {
		assert.Equal(t, name, o.String())
		assert.Equal(t, name != "none", o.Valid(), "%d", o)
		assert.Equal(t, name == "mulsum", o.Scales(), "%d", o)
	}
}

// Every operator is defined for every type but the 8-bit floats; factors are for floats alone.
func TestReduces(t *testing.T) {
	for typ := range Types + 1 {
		for o := range Op(255) {
			want := typ.Valid() && !typ.Float8() && (o < Ops || o >= Scaled && typ >= Float16)
			assert.Equal(t, want, Reduces(typ, o), "%v %d", typ, o)
		}
	}
}
