// Package machine is a rank's device for programs of XLA: what compiles them, the stream that its
// collectives are ordered on, and the memory that package zero shards a model in.
//
//	m, err := machine.New(ctx, world, &machine.Options{Plugin: path})
//	p, err := m.Build(ctx, "step", func(f *hlo.Func) []*hlo.Value { ... })
//
// On a CPU programs work on memory of Go in place, and their results are copied to it. On a GPU the
// Comm has chosen the device, and the plugin uses no other.
package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/cuda"
	"github.com/goccl/goccl/train/data"
	"github.com/goccl/goccl/xla"
	"github.com/goccl/goccl/xla/hlo"
)

// Options say how a machine compiles. All but Out are the same on all ranks.
type Options struct {
	// Plugin is the file of the PJRT plugin; "": that of $GOCCL_XLA_PLUGIN.
	Plugin string
	// Client has the plugin's client options, and Flags XLA's for all programs: name=value,name=value.
	Client, Flags string
	// Share has rank 0 compile, and the others load what it has compiled.
	Share bool
	// Alone says that nothing is exchanged: the only rank may then use a device that its Comm does not know.
	Alone bool
	// Out gets a line for each program; nil: nothing.
	Out io.Writer
}

// Machine is a rank's device, how its programs are compiled, and how its collectives are ordered.
// One goroutine at a time uses it.
type Machine struct {
	world  *ccl.Comm
	client *xla.Client
	device cuda.Device  // of a client of CUDA
	stream *cuda.Stream // likewise; nil on the CPU
	host   *ccl.HostStream
	flags  xla.Flags
	share  bool // rank 0 compiles for all
	out    io.Writer
	made   []*xla.Program
}

// New opens the device of this rank. The error is this rank's alone, unless two ranks share a GPU
// without options that allow it: abort world with it, so that the others do not wait.
func New(ctx context.Context, world *ccl.Comm, o *Options) (m *Machine, err error) {
	if o == nil {
		o = &Options{}
	}
	p, err := xla.Open(o.Plugin)
	if err != nil {
		return nil, err
	}
	options, err := parseOptions(o.Client)
	if err != nil {
		return nil, fmt.Errorf("client options: %w", err)
	}
	flags, err := parseOptions(o.Flags)
	if err != nil {
		return nil, fmt.Errorf("flags of XLA: %w", err)
	}
	m = &Machine{world: world, flags: xla.Flags(flags), share: o.Share, out: o.Out}
	if m.out == nil {
		m.out = io.Discard
	}
	m.host = ccl.NewHostStream()
	defer func() {
		if err != nil {
			err = errors.Join(err, m.Close())
			m = nil
		}
	}()
	onGPU := world.Backend() == "nccl"
	if onGPU {
		if err := m.takeDevice(options); err != nil {
			return m, err
		}
		if err := m.shared(ctx, options); err != nil {
			return m, err
		}
	}
	if m.client, err = p.NewClient(xla.Options(options)); err != nil {
		return m, err
	}
	switch {
	case m.client.OnHost() || world.Size() == 1 && o.Alone:
		return m, nil
	case !onGPU:
		err = fmt.Errorf("the plugin is for %s, and the ranks have the engine %s, which cannot reach its memory: build with -tags nccl, and give each rank a GPU; "+
			"ranks that share one take the backend nccl and its device 0", m.client.Platform(), world.Backend())
	case m.client.Platform() != "cuda" || m.client.Device() != m.device.Index():
		err = fmt.Errorf("the plugin has %s %d, and NCCL has %v", m.client.Platform(), m.client.Device(), m.device)
	default:
		m.stream, err = m.device.NewStream()
	}
	return m, err
}

// World is the Comm that the machine is a rank of.
func (m *Machine) World() *ccl.Comm { return m.world }

// Client is what buffers are put on.
func (m *Machine) Client() *xla.Client { return m.client }

// GPU is the device and the stream of a client of CUDA whose Comm knows it, else nil.
func (m *Machine) GPU() (cuda.Device, *cuda.Stream) { return m.device, m.stream }

// takeDevice finds the GPU that the Comm has for this rank, and has the plugin use no other.
func (m *Machine) takeDevice(options map[string]any) (err error) {
	if m.device, err = cuda.At(m.world.Place().Device); err != nil {
		return err
	}
	n, err := cuda.Count()
	if _, set := options["visible_devices"]; n > 1 && !set {
		options["visible_devices"] = []int64{int64(m.device.Index())}
	}
	return err
}

// use is a rank's use of its GPU.
type use struct {
	GPU  string
	Part bool // it takes its part of the memory alone
}

// shared is an error, on all ranks, if two of them have one GPU and some rank's client may take what the others need.
func (m *Machine) shared(ctx context.Context, options map[string]any) error {
	address, err := m.device.PCI()
	if err != nil {
		return err
	}
	_, fraction := options["memory_fraction"]
	all, err := ccl.AllGatherValues(ctx, m.world,
		use{m.world.Place().Host + " " + address, fraction && options["preallocate"] == false})
	if err != nil {
		return err
	}
	of := map[string]int{} // the first rank of a device
	for r, x := range all {
		first, twice := of[x.GPU]
		if !twice {
			of[x.GPU] = r
			continue
		}
		for _, rank := range []int{first, r} {
			if !all[rank].Part {
				return fmt.Errorf("ranks %d and %d share the GPU %s: give all ranks of it the options preallocate=false,memory_fraction=%.1f, or rank %d takes what the other needs",
					first, r, x.GPU, 0.8/float64(m.world.Place().Locals), rank)
			}
		}
	}
	return nil
}

// parseOptions reads name=value,name=value: numbers with a point are floats, true and false are bools.
func parseOptions(s string) (map[string]any, error) {
	o := map[string]any{}
	for _, part := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' }) {
		name, text, ok := strings.Cut(strings.TrimLeft(part, "-"), "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%q: give name=value,name=value", part)
		}
		if b, err := strconv.ParseBool(text); err == nil && len(text) > 1 {
			o[name] = b
		} else if n, err := strconv.Atoi(text); err == nil {
			o[name] = n
		} else if x, err := strconv.ParseFloat(text, 64); err == nil {
			o[name] = x
		} else {
			o[name] = text
		}
	}
	return o, nil
}

// Build writes and compiles a program that all ranks have: with Options.Share on rank 0 alone. The
// machine frees it.
func (m *Machine) Build(ctx context.Context, name string, write func(f *hlo.Func) []*hlo.Value) (*xla.Program, error) {
	return m.make(name, write, func(text string) (*xla.Program, error) { return m.compile(ctx, text) })
}

// Own is Build of a program of this rank's own: other ranks may have others.
func (m *Machine) Own(name string, write func(f *hlo.Func) []*hlo.Value) (*xla.Program, error) {
	return m.make(name, write, func(text string) (*xla.Program, error) { return m.client.Compile(text, m.flags) })
}

func (m *Machine) make(name string, write func(f *hlo.Func) []*hlo.Value,
	compile func(text string) (*xla.Program, error)) (*xla.Program, error) {
	var f hlo.Func
	text, err := f.Text(name, write(&f)...)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	p, err := compile(text)
	if err != nil {
		return nil, fmt.Errorf("program %s: %w", name, err)
	}
	m.made = append(m.made, p)
	s := p.Stats()
	if memory, err := m.client.Memory(); err == nil { // else it is not known
		if err := outOfRoom(name, takes(s), memory.Limit); err != nil {
			return nil, err
		}
	}
	fmt.Fprintf(m.out, "program %s: %d lines, compiled in %.1f s; %.3f GiB at most\n", name, strings.Count(text, "\n"),
		time.Since(began).Seconds(),
		float64(takes(s))/(1<<30))
	return p, nil
}

// takes is what a program takes at most, its arguments included.
func takes(s xla.Stats) int64 { return max(s.Peak, s.Args+s.Results-s.Alias+s.Temp) }

// outOfRoom is an error if limit, unless it is unknown, is less than a program takes.
func outOfRoom(name string, takes, limit int64) error {
	if limit <= 0 || takes <= limit {
		return nil
	}
	return fmt.Errorf("program %s takes %d bytes, %.2f GiB, and the client of this GPU has %.2f GiB: give fewer rows, more micro batches or a higher stage of ZeRO, "+
		"or in the client options a greater memory_fraction: %w", name, takes, float64(takes)/(1<<30), float64(limit)/(1<<30),
		xla.ErrOutOfMemory)
}

// compile compiles on each rank, or on rank 0 for all.
func (m *Machine) compile(ctx context.Context, text string) (*xla.Program, error) {
	if !m.share || m.world.Size() == 1 {
		return m.client.Compile(text, m.flags)
	}
	var mine *xla.Program
	saved, err := data.OnRoot(ctx, m.world, 0, func() (saved []byte, err error) {
		if mine, err = m.client.Compile(text, m.flags); err == nil {
			saved, err = mine.Save()
		}
		return saved, err
	})
	switch {
	case err != nil:
		return nil, errors.Join(err, mine.Free())
	case mine != nil:
		return mine, nil
	}
	return m.client.Load(saved)
}

// Order is the stream of collectives on the device's memory, on the CPU the host's.
func (m *Machine) Order() ccl.Stream {
	if m.stream != nil {
		return m.stream
	}
	return m.host
}

// Settle waits for what is on the stream.
func (m *Machine) Settle(ctx context.Context) error {
	if m.stream != nil {
		return m.stream.Wait(ctx)
	}
	return m.host.Do(func() error { return nil }).Wait(ctx)
}

// Close frees the programs, the stream and the client, after all buffers.
func (m *Machine) Close() error {
	var errs []error
	for _, p := range m.made {
		errs = append(errs, p.Free())
	}
	if m.stream != nil {
		errs = append(errs, m.stream.Close())
	}
	if m.client != nil {
		errs = append(errs, m.client.Close())
	}
	return errors.Join(append(errs, m.host.Close())...)
}
