package scale

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/plane/control"
)

// hosts is the size of the job that is simulated, with 12 ranks on each: `make scale` has Aurora's
// 10,080, which takes minutes and some GB.
var hosts = flag.Int("hosts", 120, "simulate a job on so many hosts")

// TestMain says what the simulation itself took.
func TestMain(m *testing.M) {
	flag.Parse()
	began := time.Now()
	code := m.Run()
	var used runtime.MemStats
	runtime.ReadMemStats(&used)
	fmt.Printf("simulated in %v, with %.2f GB\n", time.Since(began).Round(time.Second), float64(used.Sys)/1e9)
	if used.Sys > 8<<30 {
		fmt.Println("that is more than 8 GiB")
		code = 1
	}
	os.Exit(code)
}

// TestBeats is what hosts tell each other while nothing happens.
func TestBeats(t *testing.T) {
	f := newFlood(*hosts, slingshot)
	all, most := 0, 0
	for h := range f.hosts {
		n := len(f.hosts[h].links)
		all += n
		most = max(most, n)
	}
	mean := float64(all) / float64(*hosts)
	bytes := mean * float64(time.Second) / float64(plane.BeatEvery) * control.FrameHead
	t.Log("| ranks | connections a host | at most | bytes of beats a second, a host | all hosts |")
	t.Logf("| %d | %.2f | %d | %.0f | %.1f MB |", *hosts*perHost, mean, most, bytes, bytes*float64(*hosts)/1e6)
	require.LessOrEqual(t, most, 7)
	require.Zero(t, all%2, "each connection has two ends")
}
