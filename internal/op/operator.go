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
	BAnd // bit by bit, of integers; of bool it is and
	BOr
	BXor
	Ops // what is no operator begins here

	Scaled Op = 16
)

var ops = [Ops]string{"sum", "prod", "min", "max", "avg", "band", "bor", "bxor"}

// String returns the operator's name: sum, prod, min, max or avg, as in nccl-tests, band, bor or
// bxor, as in MPI, and mulsum for one that scales.
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

// Reduces reports whether o is defined for elements of type t: a library may do less.
func Reduces(t Type, o Op) bool {
	float := t >= Float16 && t <= Float64
	switch {
	case o.Scales():
		return float
	case o.Bitwise():
		return t.Integer() || t == Bool
	case t == Bool:
		return o == Min || o == Max
	case t.Complex():
		return o == Sum || o == Avg
	}
	return (t.Integer() || float || t.Float8()) && o < Ops
}

// Bitwise reports whether o works on bits.
func (o Op) Bitwise() bool { return o >= BAnd && o <= BXor }
