package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/mesh"
	"github.com/goccl/goccl/train/outer"
	"github.com/goccl/goccl/train/quant"
)

// apart is what the flag -outer says.
type apart struct {
	o     outer.Options
	asked int // sites; 0: each replica is one
	sites int // what that is in this layout; 1 without the flag
	text  string
}

func (a *apart) on() bool       { return a.text != "" }
func (a *apart) String() string { return a.text }

// Set reads the flag: words and values, with commas between them.
func (a *apart) Set(text string) error {
	*a = apart{text: text}
	ints := map[string]*int{"every": &a.o.Every, "sites": &a.asked, "fragments": &a.o.Fragments, "delay": &a.o.Delay}
	floats := map[string]*float64{"lr": &a.o.LR, "momentum": &a.o.Momentum, "mix": new(float64)}
	words := map[string]*bool{"eager": &a.o.Eager, "mean": &a.o.Mean, "stride": &a.o.Stride}
	for _, w := range strings.Split(text, ",") {
		name, value, valued := strings.Cut(w, "=")
		var err error
		switch {
		case ints[name] != nil && valued:
			*ints[name], err = strconv.Atoi(value)
		case floats[name] != nil && valued:
			*floats[name], err = strconv.ParseFloat(value, 64)
		case name == "codec" && valued:
			a.o.Codec, err = quant.Parse(value)
		case words[name] != nil && !valued:
			*words[name] = true
		default:
			return fmt.Errorf("%s is none of every=N sites=N fragments=N delay=N mix=X codec=NAME lr=X momentum=X eager mean stride", w)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", w, err)
		}
	}
	a.o.Mix = float32(*floats["mix"])
	if a.asked < 0 {
		return fmt.Errorf("sites=%d: give at least 1", a.asked)
	}
	const most = 1 << 14
	if a.o.Fragments > most {
		return fmt.Errorf("fragments=%d: give at most %d", a.o.Fragments, most)
	}
	_, err := outer.New(make([][]float32, max(a.o.Fragments, 1)), &a.o) // which says what is wrong with them
	return err
}

// place says how many sites so many replicas are.
func (a *apart) place(dp int, generates bool) error {
	a.sites = 1
	if !a.on() || generates {
		return nil
	}
	if a.sites = a.asked; a.asked == 0 {
		a.sites = dp
	}
	if dp%a.sites != 0 {
		return fmt.Errorf("-outer sites=%d does not divide %s; sites=%d does", a.sites, count(dp, "replica", "s"), nearest(dp, a.sites))
	}
	return nil
}

// comms are Comms of a trainer's mesh.
type comms struct {
	over  *ccl.Comm // of the ranks that have the same parameters
	site  *ccl.Comm // of all ranks of a site
	sites *sites
}

// sites has the replicas of a job train apart. A nil one does nothing.
type sites struct {
	u      *outer.Outer
	across *ccl.Comm // of the ranks at one place in all sites
	model  store
	me     int
	ready  bool // u has its Comm
	shards [][]float32
}

func newSites(m *mesh.Mesh, model store, units int, c *config) (*sites, error) {
	if !c.apart.on() || c.draws.generate {
		return nil, nil
	}
	s := &sites{across: m.Comm("site"), model: model, me: m.Coord("site")}
	for i := range units {
		s.shards = append(s.shards, model.Shard(i))
	}
	var err error
	s.u, err = outer.New(s.shards, &c.apart.o)
	return s, err
}

// begin gives the Outer its Comm, before the first step, when the parameters are set.
func (s *sites) begin(ctx context.Context) error {
	if s.ready {
		return nil
	}
	s.ready = true
	if err := s.u.On(ctx, s.across); err != nil {
		return err
	}
	return s.model.Loaded(ctx)
}

// step is behind each inner step.
func (s *sites) step(ctx context.Context) error {
	if s == nil {
		return nil
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	return s.moved(ctx, s.u.Step)
}

// moved calls f, and has the model know if that has changed parameters.
func (s *sites) moved(ctx context.Context, f func(context.Context) (bool, error)) error {
	moved, err := f(ctx)
	if err == nil && moved {
		err = s.model.Loaded(ctx)
	}
	return err
}

// flush ends what is under way.
func (s *sites) flush(ctx context.Context) error {
	if s == nil {
		return nil
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	return s.moved(ctx, s.u.Flush)
}

// within calls f while the model has the outer parameters.
func (s *sites) within(ctx context.Context, f func()) error {
	if s == nil {
		f()
		return nil
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	var own [][]float32
	for i, x := range s.shards {
		own = append(own, append([]float32(nil), x...))
		copy(x, s.u.Params()[i])
	}
	if err := s.model.Loaded(ctx); err != nil {
		return err
	}
	f()
	for i, x := range s.shards {
		copy(x, own[i])
	}
	return s.model.Loaded(ctx)
}

// state is what a mirror keeps, and take copies that of the Comm before.
func (s *sites) state() []ccl.Buf {
	if s == nil {
		return nil
	}
	return s.u.State()
}

func (s *sites) take(old *sites) {
	if s == nil {
		return
	}
	was := old.u.State()
	for i, b := range s.u.State() {
		if to, ok := ccl.SliceOf[int64](b); ok {
			from, _ := ccl.SliceOf[int64](was[i])
			copy(to, from)
			continue
		}
		to, _ := ccl.SliceOf[float32](b)
		from, _ := ccl.SliceOf[float32](was[i])
		copy(to, from)
	}
}

// named is a part of the state, and what comes before its names in a checkpoint.
type named struct {
	prefix string
	data   []float32
}

const ofSite = "site" // before the number of a site

// saved are the names of a checkpoint: the outer parameters have the plain ones, so that any program
// reads it, and the first site's state of AdamW has, too. nil: as without sites.
func (s *sites) saved(tr *trainer) func(unit int) []named {
	if s == nil {
		return nil
	}
	return s.names(tr, s.me)
}

func (s *sites) names(tr *trainer, site int) func(unit int) []named {
	own := fmt.Sprintf("%s%d.", ofSite, site)
	adamw := own
	if site == 0 {
		adamw = ""
	}
	return func(i int) []named {
		return []named{{"", s.u.Params()[i]}, {"outer.m.", s.u.Moments()[i]}, {own, s.shards[i]},
			{adamw + "adamw.m.", tr.adam.m[i]}, {adamw + "adamw.v.", tr.adam.v[i]}}
	}
}

// load returns the names by which to load the checkpoint dir of a step. That of a run without -outer is where the
// outer parameters begin; of other sites than there are now, they take turns.
func (s *sites) load(tr *trainer, dir string, step int) (func(unit int) []named, error) {
	if s == nil {
		return nil, nil
	}
	has, err := ckpt.Inspect(dir)
	if err != nil {
		return nil, err
	}
	saved := 0
	for _, t := range has.Tensors {
		var k int
		if rest, ok := strings.CutPrefix(t.Name, ofSite); ok {
			if number, _, ok := strings.Cut(rest, "."); ok {
				if k, err = strconv.Atoi(number); err != nil {
					return nil, fmt.Errorf("%s: tensor %s: %w", dir, t.Name, err)
				}
				saved = max(saved, k+1)
			}
		}
	}
	if saved == 0 {
		return nil, nil
	}
	s.u.Loaded(step)
	return s.names(tr, s.me%saved), nil
}

// say writes what the sites have exchanged in so many steps.
func (s *sites) say(out io.Writer, steps int) {
	if s == nil {
		return
	}
	t := s.u.Stats()
	fmt.Fprintf(out, "sites: %s, waited for %.1f s; a rank has sent %.0f bytes a step\n", count(t.Rounds, "exchange", "s"),
		t.Waited.Seconds(), float64(t.Bytes)/float64(max(steps, 1)))
}

func (s *sites) close() error {
	if s == nil || s.u == nil {
		return nil
	}
	return s.u.Close()
}
