package measure

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/goccl/goccl/ccl"
)

// What is measured once in a process, and not in loops: how long it takes to start, and how much memory it has.

// start prints how long the slowest rank took to join.
func (m *measurement) start(ctx context.Context, c *ccl.Comm, took time.Duration) error {
	return m.largest(ctx, c, "start", 0, float64(took.Nanoseconds())/1e3)
}

// idle is how long a rank does nothing before its memory is looked at.
const idle = 5 * time.Second

// memory prints the resident memory, in KiB, of the largest rank without its vectors: when it has been idle, and after
// an AllReduce of each size.
func (m *measurement) memory(ctx context.Context, c *ccl.Comm) error {
	before := resident()
	in, out := make([]float32, m.max/4), make([]float32, m.max/4)
	for i := range in {
		in[i], out[i] = element(c.Rank(), i), 1
	}
	vectors := resident() - before
	time.Sleep(idle)
	if err := m.largest(ctx, c, "memory", 0, resident()-vectors); err != nil {
		return err
	}
	for s := m.min; ; s = min(s*m.factor, m.max) {
		if err := ccl.AllReduce(ctx, c, out[:s/4], in[:s/4], ccl.Sum); err != nil {
			return err
		}
		if err := m.largest(ctx, c, "memory", s, resident()-vectors); err != nil || s >= m.max {
			return err
		}
	}
}

// resident is VmRSS of this process, in KiB.
func resident() float64 {
	text, _ := os.ReadFile("/proc/self/status")
	kib := 0.0
	for line := range strings.Lines(string(text)) {
		_, _ = fmt.Sscanf(line, "VmRSS: %f", &kib) // another line has another name
	}
	return kib
}

// largest prints a row with the largest of the ranks' values.
func (m *measurement) largest(ctx context.Context, c *ccl.Comm, op string, bytes int, value float64) error {
	v := []float64{value}
	err := ccl.AllReduce(ctx, c, v, v, ccl.Max)
	if err == nil && c.Rank() == 0 {
		_, err = fmt.Printf("%s,%s,%d,%d,%.3f,0,0,0,%.3f,%.3f,1,\n", m.peer, op, c.Size(), bytes, v[0], v[0], v[0])
	}
	return err
}
