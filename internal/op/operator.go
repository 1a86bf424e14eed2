package op

// Op is an operator that combines elements.
type Op uint8

// The operators. From Scaled on they are sums that are multiplied by a factor: each number is one
// factor of a Comm's.
const (
	Sum Op = iota
	Prod
	Min
	Max
	Avg
	Ops // what is no operator begins here

	Scaled Op = 16
)

var ops = [Ops]string{"sum", "prod", "min", "max", "avg"}

// String returns the operator's name in nccl-tests: sum, prod, min, max or avg, and mulsum for one
// that scales.
func (o Op) String() string {
	switch {
	case o.Scales():
		return "mulsum"
	case o >= Ops:
		return "none"
	}
	return ops[o]
}

// Valid reports whether o is an operator.
func (o Op) Valid() bool { return o < Ops || o.Scales() }

// Scales reports whether o multiplies the sum by a factor.
func (o Op) Scales() bool { return o >= Scaled }

// Reduces reports whether o is defined for elements of type t: a library may do less, and with
// 8-bit floats more.
func Reduces(t Type, o Op) bool {
	if o.Scales() {
		return t >= Float16 && t <= Float64
	}
	return t != None && t <= Float64 && o < Ops
}
