package harness

import (
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/goccl/goccl/bench/internal/machine"
	"github.com/goccl/goccl/bench/internal/report"
	"github.com/goccl/goccl/ccl"
)

// ceiling is what the machine could carry: between hosts what -ceiling or their
// interfaces say, within one what each rank copies when all do at once. Only the
// report wants it.
func (s *session) ceiling() (*report.Ceiling, error) {
	switch {
	case s.o.Ceiling > 0:
		return &report.Ceiling{Bandwidth: s.o.Ceiling, What: fmt.Sprintf("%g GB/s, as -ceiling says", s.o.Ceiling)}, nil
	case s.o.HTML == "":
		return nil, nil
	}
	hosts := s.world.Place().Nodes
	gbs := []float64{0}
	if hosts > 1 {
		gbs[0] = interfaces("/")
	} else {
		gbs[0] = copying()
	}
	if err := ccl.AllReduce(s.ctx, s.world, gbs, gbs, ccl.Min); err != nil {
		return nil, err
	}
	switch {
	case gbs[0] == 0:
		return nil, nil
	case hosts > 1:
		return &report.Ceiling{Bandwidth: gbs[0],
			What: fmt.Sprintf("%.4g GB/s, the network interfaces of a host together", gbs[0])}, nil
	}
	return &report.Ceiling{Bandwidth: gbs[0],
		What: fmt.Sprintf("%.4g GB/s, what each rank copies in memory when all do", gbs[0])}, nil
}

// copying is how fast this rank copies memory, in GB/s.
func copying() float64 {
	const size, least = 32 << 20, 60 * time.Millisecond
	dst, src := make([]byte, size), make([]byte, size)
	fill(src)
	copy(dst, src)
	start, n := time.Now(), 0
	for time.Since(start) < least {
		copy(dst, src)
		n++
	}
	return float64(n*size) / time.Since(start).Seconds() / 1e9
}

// interfaces is what the physical network interfaces of this host carry together each
// way, in GB/s; 0 if the system under root does not tell.
func interfaces(root string) float64 {
	total := 0.0
	devices, _ := filepath.Glob(filepath.Join(root, "/sys/class/net/*/device"))
	for _, device := range devices {
		dir := filepath.Dir(device)
		mbit, err := strconv.Atoi(machine.Word(dir, "speed"))
		if err == nil && mbit > 0 && machine.Word(dir, "operstate") == "up" {
			total += float64(mbit) / 8e3
		}
	}
	return total
}
