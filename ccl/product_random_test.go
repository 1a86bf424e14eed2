package ccl_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// codeOf is the Code of an Error.
func codeOf(err error) ccl.Code {
	var e *ccl.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// seedVar sets the seed of the random sample.
const seedVar = "GOCCL_TEST_SEED"

// seed is that of this run, the same in all its processes.
func seed(t *testing.T) uint64 {
	t.Helper()
	if os.Getenv(seedVar) == "" {
		t.Setenv(seedVar, strconv.FormatInt(time.Now().UnixNano(), 10))
	}
	s, err := strconv.ParseUint(os.Getenv(seedVar), 10, 64)
	require.NoError(t, err)
	t.Logf("%s=%d", seedVar, s)
	return s
}

// Random calls of random lengths, others at each run.
func TestProductRandom(t *testing.T) {
	seed := seed(t)
	calls, longest := 2000, 1<<17
	if testing.Short() {
		calls, longest = 150, 1<<14
	}
	for i, n := range []int{2 + int(mix(seed)%3), 5 + int(mix(seed+1)%4)} {
		inWorlds(t, n, func(t testing.TB, c *ccl.Comm) {
			random := rand.New(rand.NewPCG(seed, uint64(i))) // the same on all ranks
			for number := range calls {
				s, e := randomCall(random, n, longest)
				s.number = uint64(number)
				s.uneven(n)
				require.NoError(t, e.play(t.Context(), c, s), "%s=%d", seedVar, seed)
			}
		}, ccltest.Deadline(3*time.Minute))
	}
}

func randomCall(random *rand.Rand, n, longest int) (shape, element) {
	e := elements[random.IntN(len(elements))]
	// As many short as long ones, and those that divide well as often as others.
	count := int(float64(random.IntN(longest)) / float64(int(1)<<random.IntN(17)))
	if random.IntN(2) == 0 {
		count &^= 63
	}
	s := shape{kind: kinds[random.IntN(len(kinds))], op: ccl.Op(random.IntN(int(ccl.Avg) + 1)), root: random.IntN(n),
		count: count, queued: random.IntN(4) == 0}
	s.inPlace = random.IntN(2) == 0 && s.canBeInPlace()
	switch s.kind {
	case ccl.KindAllReduce, ccl.KindReduce, ccl.KindBroadcast, ccl.KindSend, ccl.KindSendRecv:
	default:
		s.count /= n
	}
	return s, e
}
