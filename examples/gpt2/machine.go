package main

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

// machine is a rank's device, and how its programs are compiled and its collectives ordered.
type machine struct {
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

// newMachine opens the device of this rank.
func newMachine(ctx context.Context, world *ccl.Comm, c *config, out io.Writer) (*machine, error) {
	p, err := xla.Open(c.plugin)
	if err != nil {
		return nil, err
	}
	options, err := parseOptions(c.options)
	if err != nil {
		return nil, fmt.Errorf("-options: %w", err)
	}
	flags, err := parseOptions(c.flags)
	if err != nil {
		return nil, fmt.Errorf("-flags: %w", err)
	}
	m := &machine{world: world, flags: xla.Flags(flags), share: c.share, out: out, host: ccl.NewHostStream()}
	onGPU := world.Backend() == "nccl"
	if onGPU {
		if err := m.takeDevice(options); err != nil {
			return nil, err
		}
		if err := m.shared(ctx, options); err != nil {
			return nil, err
		}
	}
	if m.client, err = p.NewClient(xla.Options(options)); err != nil {
		return nil, err
	}
	switch {
	case m.client.OnHost() || world.Size() == 1 && c.alone():
		return m, nil
	case !onGPU:
		err = fmt.Errorf("the plugin is for %s, and the ranks have the engine %s, which cannot reach its memory: build with -tags nccl, and give each rank a GPU; "+
			"ranks that share one take -backend nccl -device 0", m.client.Platform(), world.Backend())
	case m.client.Platform() != "cuda" || m.client.Device() != m.device.Index():
		err = fmt.Errorf("the plugin has %s %d, and NCCL has %v", m.client.Platform(), m.client.Device(), m.device)
	default:
		m.stream, err = m.device.NewStream()
	}
	if err != nil {
		return nil, errors.Join(err, m.client.Close())
	}
	return m, nil
}

// takeDevice finds the GPU that the Comm has for this rank, and has the plugin use no other.
func (m *machine) takeDevice(options map[string]any) (err error) {
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
func (m *machine) shared(ctx context.Context, options map[string]any) error {
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
				return fmt.Errorf("ranks %d and %d share the GPU %s: give all ranks of it -options preallocate=false,memory_fraction=%.1f, or rank %d takes what the other needs",
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

// build writes and compiles a program that all ranks have: with -share on rank 0 alone.
func (m *machine) build(ctx context.Context, name string, write func(f *hlo.Func) []value) (*xla.Program, error) {
	return m.make(name, write, func(text string) (*xla.Program, error) { return m.compile(ctx, text) })
}

// own is build of a program of this rank's own: other ranks may have others.
func (m *machine) own(name string, write func(f *hlo.Func) []value) (*xla.Program, error) {
	return m.make(name, write, func(text string) (*xla.Program, error) { return m.client.Compile(text, m.flags) })
}

func (m *machine) make(name string, write func(f *hlo.Func) []value,
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
	return fmt.Errorf("program %s takes %d bytes, %.2f GiB, and the client of this GPU has %.2f GiB: give fewer -rows, or more -micro or -zero, "+
		"or in -options a greater memory_fraction: %w", name, takes, float64(takes)/(1<<30), float64(limit)/(1<<30),
		xla.ErrOutOfMemory)
}

// compile compiles on each rank, or on rank 0 for all.
func (m *machine) compile(ctx context.Context, text string) (*xla.Program, error) {
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

// order is the stream of collectives on the device's memory, on the CPU the host's.
func (m *machine) order() ccl.Stream {
	if m.stream != nil {
		return m.stream
	}
	return m.host
}

// settle waits for what is on the stream.
func (m *machine) settle(ctx context.Context) error {
	if m.stream != nil {
		return m.stream.Wait(ctx)
	}
	return m.host.Do(func() error { return nil }).Wait(ctx)
}

// scalars is hyper's argument.
func (m *machine) scalars(step int, lr float64) (*xla.Buffer, error) {
	return xla.Put(m.client, []float32{float32(step), float32(lr)}, 2)
}

// close frees the programs, the stream and the client, after all buffers.
func (m *machine) close() error {
	var errs []error
	for _, p := range m.made {
		errs = append(errs, p.Free())
	}
	if m.stream != nil {
		errs = append(errs, m.stream.Close())
	}
	return errors.Join(append(errs, m.host.Close(), m.client.Close())...)
}
