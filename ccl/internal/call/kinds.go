package call

// IsPairwise reports whether calls of kind k are between two ranks.
func IsPairwise(k Kind) bool { return k.Pairwise() }

// KindOf is k as the schedules name it.
func KindOf(k Kind) Kind { return k.Equal() }
