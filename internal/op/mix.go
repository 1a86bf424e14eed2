package op

// Mix is the rolling hash by which ranks compare the calls that they have made: of the words that
// have been mixed into it, in their order. It finds mistakes, not attacks.
type Mix uint64

// NewMix returns the hash of no words.
func NewMix() Mix { return 14695981039346656037 }

// With returns the hash of what has been mixed into h, and then v.
func (h Mix) With(v uint64) Mix {
	h ^= Mix(v)
	h *= 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// Sum returns 32 bits of h, never 0: 0 is the value of a flag before any rank has written it.
func (h Mix) Sum() uint32 { return uint32(h>>32) | 1 }
