package harness

import (
	"errors"
	"fmt"

	"github.com/goccl/goccl/bench/internal/machine"
	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/bench/internal/report"
	"github.com/goccl/goccl/ccl/boot"
)

// plan is what is to be run, and as what.
type plan struct {
	option.Options
	where    boot.Launch
	launched bool // a launcher started this process, bench perhaps
	ours     bool // bench did
}

// processes is how many there are, or will be.
func (p *plan) processes() int {
	if p.launched {
		return p.where.Size
	}
	return p.NP
}

// check refuses what cannot be run, before anything is started.
func (p *plan) check() error {
	if p.ours {
		if !p.launched {
			return errors.New(ours + " is set, but nothing tells this process its rank; unset it")
		}
		return nil // the parent has checked
	}
	if p.launched {
		switch {
		case p.Hosts > 1:
			return fmt.Errorf("-hosts %d: %s has started the ranks, and placed them; leave it out", p.Hosts, p.where.Launcher)
		case p.NPGiven && p.NP != p.where.Size:
			return fmt.Errorf("-np %d: %s has started %d processes; leave it out", p.NP, p.where.Launcher, p.where.Size)
		}
	} else {
		units, what := p.NP, "processes"
		if p.NP == 1 {
			units, what = p.Threads, "ranks"
		}
		if err := p.FitsHosts(units, what); err != nil {
			return err
		}
	}
	if err := p.Fits(p.processes() * p.Threads); err != nil {
		return err
	}
	if err := p.fitsMemory(machine.Memory("/")); err != nil {
		return err
	}
	if p.JSON != "" && p.where.Rank == 0 {
		return report.Writable(p.JSON)
	}
	return nil
}

// fitsMemory refuses sizes for which the buffers of the ranks here, two each, are
// larger than this machine's memory, 0 if that is not known.
func (p *plan) fitsMemory(memory int) error {
	here := p.NP
	if p.launched {
		here = max(p.where.Locals, 1)
	}
	sizes := p.Sizes()
	largest := sizes[len(sizes)-1]
	if ranks := here * p.Threads; memory > 0 && largest > memory/2/ranks {
		return fmt.Errorf("-e %s: %d ranks with two buffers each need more than this machine's %d MiB of memory; try -e %s",
			option.FormatSize(p.Max), ranks, memory>>20, option.FormatSize(powerBelow(memory/4/ranks)))
	}
	return nil
}

func powerBelow(n int) int {
	p := 1
	for p <= n/2 {
		p *= 2
	}
	return p
}
