package harness

import (
	"os"
	"strconv"
	"time"
)

// slowdown is by how many percent each call is made longer.
var slowdown, _ = strconv.ParseFloat(os.Getenv("GOCCL_TEST_SLOWDOWN"), 64)

// shortest is the shortest call so far of those of this size. What a rank waits for another counts in a call's time:
// without a limit each would wait for the other ever longer.
var shortest struct {
	bytes int
	took  time.Duration
}

// nanos is what a round of spin takes: the least of several attempts, since other
// programs only add to it.
var nanos = func() float64 {
	const rounds = 20000
	least := time.Hour
	for range 20 {
		start := time.Now()
		spin(rounds)
		least = min(least, time.Since(start))
	}
	return float64(least.Nanoseconds()) / rounds
}()

// call makes the calls of one iteration, and then spends the slowdown.
func (t *test[T]) call(st *set[T]) error {
	start := time.Now()
	err := t.unslowed(st)
	took := time.Since(start)
	if t.bytes != shortest.bytes || took < shortest.took {
		shortest.bytes, shortest.took = t.bytes, took
	}
	if took = min(took, 3*shortest.took); slowdown > 0 {
		spin(int(float64(took.Nanoseconds()) * slowdown / 100 / nanos))
	}
	return err
}

// spin is arithmetic of which each round needs the one before. Asking the clock, for
// how long it has been, would take longer than a tenth of a short call.
//
//go:noinline
func spin(rounds int) uint64 {
	x := uint64(rounds)
	for range rounds {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}
