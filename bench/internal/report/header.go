package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/bench/internal/prose"
	"github.com/goccl/goccl/ccl"
)

// Place is one rank's.
type Place struct {
	Rank   int    `json:"rank"`
	Group  int    `json:"group"`
	Pid    int    `json:"pid"`
	Host   string `json:"hostname"`
	Device int    `json:"device"`      // the rank's number on its host
	Hex    string `json:"device_hex"`  // the device's address; cpu
	Info   string `json:"device_info"` // the CPU's name
}

// Program is what nccl-tests would call the run: a program of theirs if there is one for it, else bench.
func Program(o *option.Options) string {
	if o.As != "" {
		return o.As
	}
	if len(o.Collectives) == 1 && o.Plan == "" {
		if name := option.ProgramOf(o.Collectives[0]); name != "" {
			return name
		}
	}
	return "bench"
}

// Header is what comes above the table: what ran, nccl-tests' line of settings
// as far as they have a meaning here, and a line per rank.
func (f *File) Header(o *option.Options) string {
	c := &f.Config
	least, most, step := o.Span(c.GroupRanks)
	text := fmt.Sprintf("%s# goccl %s, %s\n# ranks: %d  processes: %d (%s)  hosts: %d  engine: %s  transport: %s\n# CPU: %s\n"+
		"%s# Collective test starting: %s\n# nThread %d nGpus %d minBytes %d maxBytes %d step: %s warmup iters: %d iters: %d agg iters: %d validation: %d graph: %d\n%s#\n# Using devices\n",
		written(o), f.Goccl, f.Go, c.Ranks, c.Processes, c.Launcher, c.Hosts, c.Engine, c.Transport, c.CPU, hinted(o),
		Program(o),
		o.Threads/max(o.PerThread, 1), max(o.PerThread, 1), least, most, step, o.Warmup, o.Iters, o.Agg, o.Check, o.Graph,
		unequal(c.Groups))
	places := prose.Names(c.Devices, func(p Place) string {
		return fmt.Sprintf("#  Rank %2d Group %2d Pid %6d on %10s device %2d [%s] %s\n", p.Rank, p.Group, p.Pid, p.Host,
			p.Device, p.Hex, p.Info)
	})
	text += strings.Join(places, "")
	if f.Startup != nil {
		text += f.Startup.line()
	}
	return text
}

// written says where nccl-tests would write its JSON: the file may have another name than was asked for.
func written(o *option.Options) string {
	if o.As == "" || o.JSON == "" {
		return ""
	}
	return "# Writing JSON output to " + o.JSON + "\n"
}

// hinted says what the library was asked, with -v.
func hinted(o *option.Options) string {
	if !o.Verbose || o.Hints == (ccl.Hints{}) {
		return ""
	}
	return "# Hints: " + o.Hints.String() + "\n"
}

// unequal says what the table shows of groups that differ in size.
func unequal(groups []int) string {
	if len(groups) == 0 || slices.Min(groups) == slices.Max(groups) {
		return ""
	}
	return fmt.Sprintf("# Groups of %d to %d ranks: sizes, times and busbw are those of the groups with %d, as rank 0's\n",
		slices.Min(groups), slices.Max(groups), groups[0])
}

// line says what it took to begin.
func (s *Startup) line() string {
	text := "#\n# Start-up: ranks found each other in " + ms(s.Join)
	for _, name := range slices.Sorted(maps.Keys(s.Comms)) {
		text += fmt.Sprintf("; %s communicator: %s", name, ms(s.Comms[name]))
	}
	if s.Split > 0 {
		text += "; split: " + ms(s.Split)
	}
	return text + fmt.Sprintf(" (slowest: rank %d)\n", s.Rank)
}

func ms(us float64) string { return fmt.Sprintf("%.4g ms", us/1e3) }
