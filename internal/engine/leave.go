package engine

// Gatherer is an Engine whose Close may wait for the other ranks of the host.
type Gatherer interface {
	// Gathers reports whether Close waits until all ranks of the host have called it.
	Gathers() bool
	// CloseApart is Close without that wait. What was issued must have ended on the device: it is
	// cut off otherwise.
	CloseApart() error
}
