// Package predict has bench plan, which predicts what the ways to spread the training of a model
// over a machine spend on communication.
//
// The model is Hockney's (1994): a message of m bytes takes alpha + beta m, and a collective takes as many of them, one
// after another, as its algorithm says.
package predict

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/goccl/goccl/bench/internal/model"
	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/bench/internal/prose"
)

// link is what one message takes, in microseconds and microseconds per byte.
type link struct{ alpha, beta float64 }

// job is where a model is to be trained.
type job struct {
	model           *model.Model
	nodes, ppn      int
	elem            int
	inside, between link
}

// cost is what a call takes on n ranks over one kind of link, by the best algorithm of those that everybody has
// (docs/costs.md): halving, doubling, or one message to each rank. A ring sends as many bytes as halving does, in more
// messages.
func (k link) cost(c model.Call, n, elem int) float64 {
	rounds, others := float64(bits.Len(uint(n-1))), float64(n-1)/float64(n)
	time := func(messages, volume float64) float64 {
		return messages*k.alpha + volume*float64(c.Elements*elem)*k.beta
	}
	switch c.Op {
	case "allreduce":
		return min(time(2*rounds, 2*others), time(rounds, rounds))
	case "reducescatter", "allgather":
		return time(rounds, others)
	case "alltoall":
		return time(float64(n-1), others)
	case "sendrecv":
		return time(1, 1)
	}
	return math.Inf(1)
}

// step is what one training step's calls take on n ranks, in microseconds.
func (j *job) step(scheme string, n int, k link) (us float64, err error) {
	if n < 2 {
		return 0, nil
	}
	calls, err := j.model.Step(scheme, n, j.elem)
	for _, c := range calls {
		us += k.cost(c, n, j.elem)
	}
	return us, err
}

// over is the link that n neighbouring ranks are bound by.
func (j *job) over(n int) link {
	if n > j.ppn {
		return j.between
	}
	return j.inside
}

// write is the table of bench plan.
func (j *job) write(w io.Writer) {
	n := j.nodes * j.ppn
	fmt.Fprintf(w, "# %s (%s): %d parameters of %d bytes, on %d nodes of %d ranks\n", j.model.Name, j.model.Source,
		j.model.Parameters(), j.elem, j.nodes, j.ppn)
	fmt.Fprintf(w, "# inside a node %.4g us, %.4g GB/s; between nodes %.4g us, %.4g GB/s\n", j.inside.alpha,
		1/j.inside.beta/1e3, j.between.alpha, 1/j.between.beta/1e3)
	fmt.Fprintf(w, "# Communication of one step if nothing of it is hidden, one sequence a rank (%d a rank for pp; one in all where layers or the sequence are cut). PREDICTED, not measured.\n", model.MicroBatches)
	fmt.Fprintf(w, "#%9s  %18s  %18s\n", "scheme", "in a node (ms)", "over all (ms)")
	type row struct {
		name        string
		inside, all float64
	}
	var rows []row
	for _, scheme := range model.SchemeNames() {
		in, err := j.step(scheme, j.ppn, j.inside)
		if err != nil {
			continue
		}
		all, _ := j.step(scheme, n, j.over(n))
		rows = append(rows, row{scheme, in, all})
		fmt.Fprintf(w, "%10s  %18s  %18s\n", scheme, ms(in, j.ppn), ms(all, n))
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.all, b.all) })
	order := prose.Names(rows, func(r row) string { return r.name })
	fmt.Fprintf(w, "# Cheapest first over all ranks: %s. They do not save the same memory: see the scheme's line in docs/bench-flags.md.\n# %s\n", strings.Join(order, ", "), j.advice())
}

func ms(us float64, n int) string {
	if n < 2 {
		return "-"
	}
	return fmt.Sprintf("%.4g", us/1e3)
}

// fastInside is the bandwidth of the links in a node, in GB/s, from which they count as fast.
const fastInside = 100

// perByte is what a byte takes, in microseconds, at so many GB/s.
func perByte(gb float64) float64 { return 1 / gb / 1e3 }

// fast is the ratio of the links' bandwidths below which they count as comparable.
const fast = 2

// advice is the order in which to try, as the training courses of large machines give it.
func (j *job) advice() string {
	switch ratio := j.between.beta / j.inside.beta; {
	case j.nodes == 1 && j.inside.beta <= perByte(fastInside):
		return "One node with fast links: pp, zero and tp are comparable; measure with -plan."
	case j.nodes == 1:
		return "One node with slow links: try pp first, then zero or tp."
	case ratio < fast:
		return "Links between nodes are about as fast as inside: zero, or pp with zero, tp and ddp together; keep tp inside a node."
	}
	return "Links between nodes are slower than inside: ddp over nodes with pp, tp inside a node, and zero1."
}

const planUsage = `bench plan predicts what each way to spread a model's training over a machine spends on
communication, from the latency and bandwidth of its links. Of a run of -op sendrecv those are
the time of 8 bytes, and the busbw of the largest size.

  bench plan -inside US,GB/S -between US,GB/S [flags]
  bench plan -inside 1.5,100 -between 5,25 -model llama-7b -nodes 64 -ppn 12

`

const planEnd = `
Exit status: 0 good, 2 bad usage.
`

// Command is bench plan.
func Command(args []string, stdout, stderr io.Writer) int {
	sub := option.NewSub("plan", planUsage, planEnd, stdout, stderr)
	name := sub.String("model", "NAME", "gpt2-85m", "NAME of the model: "+strings.Join(model.Names(), " ")+" (gpt2-85m)")
	nodes, ppn := 2, 4
	sub.Count(&nodes, "nodes", "number of nodes (2)", 1, 1<<20)
	sub.Count(&ppn, "ppn", "ranks per node (4)", 1, 1<<12)
	elem := 2
	sub.Count(&elem, "bytes", "bytes of a parameter, a gradient or an activation: 2 or 4 (2)", 1, 4)
	inside := sub.String("inside", "LINK", "", "the LINK between ranks of a node: US,GB/S such as 1.5,100")
	between := sub.String("between", "LINK", "", "the LINK between nodes: US,GB/S such as 5,25")
	sub.Stray = option.NoOperands
	if goOn, status := sub.Parse(args); !goOn {
		return status
	}
	m := model.Named(*name)
	var err error
	switch {
	case m == nil:
		return sub.Complain(option.BadUsage, fmt.Errorf("-model %s: %w", *name, option.NoSuch("model", *name, model.Names())))
	case *inside == "":
		return sub.Complain(option.BadUsage,
			errors.New("-inside is missing: give the link's microseconds and GB/s, -inside 1.5,100"))
	case nodes > 1 && *between == "":
		return sub.Complain(option.BadUsage,
			errors.New("-between is missing: give microseconds and GB/s of the link between nodes, -between 5,25"))
	case elem != 2 && elem != 4:
		return sub.Complain(option.BadUsage, fmt.Errorf("-bytes %d: it must be 2 or 4", elem))
	}
	j := &job{model: m, nodes: nodes, ppn: ppn, elem: elem}
	flag := "-inside"
	if j.inside, err = readLink(*inside); err == nil {
		j.between = j.inside
		if nodes > 1 {
			flag = "-between"
			j.between, err = readLink(*between)
		}
	}
	if err != nil {
		return sub.Complain(option.BadUsage, fmt.Errorf("%s %w", flag, err))
	}
	j.write(stdout)
	return option.Good
}

var errLink = errors.New("a link is its latency in microseconds and its bandwidth in GB/s, such as 5,25")

// readLink reads 1.5,100.
func readLink(s string) (link, error) {
	us, gb, _ := strings.Cut(s, ",")
	alpha, err1 := strconv.ParseFloat(us, 64)
	bw, err2 := strconv.ParseFloat(gb, 64)
	if err1 == nil && err2 == nil && alpha >= 0 && bw > 0 && !math.IsInf(alpha+bw, 0) {
		return link{alpha, perByte(bw)}, nil
	}
	return link{}, fmt.Errorf("%s: %w", s, errLink)
}
