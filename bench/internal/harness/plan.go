package harness

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/goccl/goccl/bench/internal/launch"
	"github.com/goccl/goccl/bench/internal/machine"
	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/bench/internal/prose"
	"github.com/goccl/goccl/bench/internal/report"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/algo"
	"github.com/goccl/goccl/internal/environ"
	"github.com/goccl/goccl/internal/files"
)

// plan is what is to be run, and as what.
type plan struct {
	option.Options
	where    boot.Launch
	launched bool // a launcher started this process, bench perhaps
	ours     bool // bench did

	start *launch.Plan // where nobody has started ranks yet
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
			return errors.New(environ.BenchParent.Name + " is set, but nothing tells this process its rank; unset it")
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
		units, one, several := p.NP, "process", "processes"
		if p.NP == 1 {
			units, one, several = p.Threads, "rank", "ranks"
		}
		if err := option.FitsHosts(p.Hosts, units, one, several); err != nil {
			return err
		}
	}
	if err := p.Fits(p.processes() * p.Threads); err != nil {
		return err
	}
	if _, err := algo.ParseOverride(environ.Algo.Get()); err != nil {
		return err
	}
	if err := p.fitsMemory(machine.Memory("/")); err != nil {
		return err
	}
	for _, name := range p.Backends {
		if !slices.Contains(ccl.Backends(), name) {
			return fmt.Errorf("-backend %s: this program was built without it; it has %s. Build it with -tags %s", name,
				strings.Join(ccl.Backends(), ", "), name)
		}
	}
	if p.Hints != (ccl.Hints{}) && !slices.ContainsFunc(p.Backends, func(name string) bool { return name != "cpu" }) {
		return fmt.Errorf("-hints %v: the cpu engine takes none; name the backend of your device with -backend, or leave it out", p.Hints)
	}
	if p.Graph > 0 && p.Mem == "host" {
		return fmt.Errorf("-G %d: a graph is captured from a device's stream, and these buffers are in host memory; name the backend of your device with -backend and -mem device, or leave -G out", p.Graph)
	}
	if p.Matrix != nil {
		for _, n := range p.Split.Sizes(p.processes() * p.Threads) {
			if err := p.Matrix.Fits(n); err != nil {
				return err
			}
		}
	}
	if p.where.Rank > 0 {
		return nil
	}
	local := p.start != nil && p.start.Local
	for _, f := range p.files() {
		if err := cmp.Or(f.arrives(p.launched, local, p.NP), report.Writable(f.flag, f.path)); err != nil {
			return err
		}
	}
	for _, d := range p.directories() {
		if err := report.WritableDirectory(d.flag, d.path); err != nil {
			return err
		}
	}
	if p.PNG != "" {
		_, err := rasterizer()
		return err
	}
	return nil
}

// output files, and how each is written.
type outputFile struct {
	flag, path string
	write      func(*report.File, io.Writer) error
}

func (p *plan) files() []outputFile {
	all := []outputFile{{"J", p.JSON, (*report.File).JSON}, {"csv", p.CSV, (*report.File).WriteCSV},
		{"html", p.HTML, (*report.File).HTML}}
	return slices.DeleteFunc(all, outputFile.unasked)
}

// afterOwn is the first descriptor that is in a rank what it is here: boot.Spawn gives ranks files
// of their own before it.
const afterOwn = 5

// arrives is an error where the descriptor that f is named by is another in rank 0, which writes it: of
// np ranks, which a launcher has started, or is to start, or this program itself, if they are local.
func (f outputFile) arrives(launched, local bool, np int) error {
	fd, is := files.Descriptor(f.path)
	switch {
	case !is || fd < 3 || launched:
	case !local:
		return fmt.Errorf("-%s %s: a launcher starts rank 0, which has no such descriptor; name a file", f.flag, f.path)
	case np > 1 && fd < afterOwn:
		return fmt.Errorf("-%s %s: the ranks that bench starts have files of their own there; take %d or a higher number",
			f.flag, f.path, afterOwn)
	}
	return nil
}

// directories are those that figures go to.
func (p *plan) directories() []outputFile {
	return slices.DeleteFunc([]outputFile{{flag: "svg", path: p.SVG}, {flag: "png", path: p.PNG}}, outputFile.unasked)
}

func (f outputFile) unasked() bool { return f.path == "" }

// fitsMemory refuses sizes for which the buffers of the ranks here, two each, are
// larger than this machine's memory, 0 if that is not known.
func (p *plan) fitsMemory(memory int) error {
	here := p.NP
	switch {
	case p.launched:
		here = max(p.where.Locals, 1)
	case p.start != nil && !p.start.Local:
		here = p.start.PerNode
	}
	ranks := here * p.Threads
	needs := func(largest, off, sets int) bool { // which flags make larger, each by itself
		return mulOver(mulOver(2*ranks, sets), stride(largest, off)) > memory
	}
	largest := p.Largest(p.processes() * p.Threads)
	flag, remedy := "", ""
	power := func(room int) string { return option.FormatSize(1 << (bits.Len(uint(max(room, 1))) - 1)) } // of two
	switch {
	case memory == 0 || !needs(largest, p.Misalign, p.Rotate):
		return nil
	case needs(largest, 0, 1) && p.Plan != "":
		flag, remedy = "-plan "+p.Plan, "try fewer ranks, -d bf16 or another -model"
	case needs(largest, 0, 1) && len(p.Lengths) > 0:
		flag, remedy = "-sizes", "leave the largest out"
	case needs(largest, 0, 1):
		flag, remedy = "-e "+option.FormatSize(p.Max), "try -e "+power(memory/4/ranks)
	case needs(largest, p.Misalign, 1):
		flag, remedy = fmt.Sprintf("-u %d", p.Misalign), "try a smaller one: 1 is off any alignment"
	default:
		flag, remedy = fmt.Sprintf("-rotate %d", p.Rotate),
			fmt.Sprintf("try -rotate %d", max(memory/2/ranks/stride(largest, p.Misalign), 1))
	}
	return fmt.Errorf("%s: %s with two buffers of %d MiB each need more than this machine's %d MiB of memory; %s",
		flag, prose.Count(ranks, "rank"), mulOver(stride(largest, p.Misalign), p.Rotate)>>20, memory>>20, remedy)
}

// stride is how much memory one buffer takes, of so many bytes, and so many elements off its alignment.
func stride(bytes, off int) int {
	if off > (math.MaxInt-bytes)/16 {
		return math.MaxInt
	}
	return (bytes+off*8+63)/64*64 + 64
}
