package engine

// Hints are what a user asks of the way in which a library works. A field that is zero is left to the library.
type Hints struct {
	MinCTAs, MaxCTAs int
	CTAPolicy        int // 1: efficiency, 2: zero
	TrafficClass     int
	Net              string
	LaunchOrder      bool
}

// Hinted is a Library that takes hints.
type Hinted interface {
	// Hints is nil, or which of them the library lacks.
	Hints(h Hints) error
}
