package xla

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/goccl/goccl/internal/lent"
)

// Stats is the memory that a program takes on the device, in bytes, known before it runs.
type Stats struct {
	Code    int64
	Args    int64
	Results int64
	Alias   int64 // of the results, what takes the place of donated arguments
	Temp    int64
	Peak    int64 // all of it at once; 0 if the plugin does not tell
}

// A Program is a compiled program.
type Program struct {
	own     *owned
	results int
	stats   Stats
	shapes  atomic.Pointer[[]*shape] // of the results, once it has run
}

// Compile compiles StableHLO text.
func (c *Client) Compile(text string, f Flags) (*Program, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.mu.RUnlock()
	o, err := f.encode()
	if err != nil {
		return nil, err
	}
	h, n, s, said := compile(c.p.api, c.handle, text, o)
	if err := failure("compile", fmt.Sprintf("%d bytes of text", len(text)), said); err != nil {
		return nil, err
	}
	return c.program(h, n, s), nil
}

// Load returns a program that Save wrote, for a device of the same kind, with a plugin of the same
// version. The bytes are code, as a plugin is: do not load what others could have written.
func (c *Client) Load(saved []byte) (*Program, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.mu.RUnlock()
	if len(saved) == 0 {
		return nil, errors.New("xla: load: no bytes")
	}
	h, n, s, said := load(c.p.api, c.handle, saved)
	if err := failure("load", fmt.Sprintf("%d bytes", len(saved)), said); err != nil {
		return nil, err
	}
	return c.program(h, n, s), nil
}

func (c *Client) program(handle uintptr, results int, s Stats) *Program {
	return &Program{own: c.own(lent.Here(), "program", placeProgram, handle), results: results, stats: s}
}

// Save returns the compiled program as bytes for Load: one rank compiles, and the others load.
func (x *Program) Save() ([]byte, error) {
	h, err := x.use()
	if err != nil {
		return nil, err
	}
	defer x.own.done()
	b, said := save(x.own.c.p.api, h)
	return b, failure("save", "", said)
}

// use is owned.use.
func (x *Program) use() (uintptr, error) {
	if x == nil {
		return 0, fmt.Errorf("xla: no program: %w", ErrClosed)
	}
	return x.own.use()
}

// Stats returns the memory that x takes.
func (x *Program) Stats() Stats { return x.stats }

// Results returns how many results x has.
func (x *Program) Results() int { return x.results }

// Free releases the program. Runs that have begun go on. Nil is nothing to free.
func (x *Program) Free() error {
	if x == nil {
		return nil
	}
	return x.own.release()
}

// Run starts the program on args and returns its results, which are not computed yet: see the
// package comment. The first donate of the arguments are donated: they are gone when Run returns
// without an error. The text says whose memory becomes that of which result, by the attribute
// tf.aliasing_output; an argument with it that is not donated is copied first.
func (x *Program) Run(donate int, args ...*Buffer) ([]*Buffer, error) {
	exec, err := x.use()
	if err != nil {
		return nil, err
	}
	defer x.own.done()
	if donate < 0 || donate > len(args) {
		return nil, fmt.Errorf("xla: run: %d of %d arguments donated", donate, len(args))
	}
	c := x.own.c
	in := make([]uintptr, len(args))
	keep := make([]int64, 0, len(args)-donate)
	for i, b := range args {
		if err = b.of(c); err == nil && i < donate {
			in[i], err = b.take()
		} else if err == nil {
			in[i], err = b.own.use()
			keep = append(keep, int64(i))
		}
		if err != nil {
			release(args[:i], donate)
			return nil, fmt.Errorf("argument %d of %d: %w", i, len(args), err)
		}
	}
	out := make([]uintptr, x.results)
	if err := failure("run", x.asks(), execute(c.p.api, exec, c.device, in, keep, out)); err != nil {
		release(args, donate)
		return nil, err
	}
	for i, b := range args {
		if i < donate {
			b.own.taken()
		} else {
			b.own.done()
		}
	}
	return x.wrap(out)
}

// release gives up arguments of a run that did not happen.
func release(args []*Buffer, donate int) {
	for i, b := range args {
		if i < donate {
			b.own.left()
		} else {
			b.own.done()
		}
	}
}

// asks says what memory a run takes.
func (x *Program) asks() string {
	return fmt.Sprintf("a program with %d bytes of results and %d of temporaries", x.stats.Results-x.stats.Alias,
		x.stats.Temp)
}

// wrap makes buffers of a run's results.
func (x *Program) wrap(handles []uintptr) ([]*Buffer, error) {
	c, made := x.own.c, lent.Here()
	shapes := x.shapes.Load()
	if shapes == nil {
		all := make([]*shape, len(handles))
		for i, h := range handles {
			var said string
			if all[i], said = shapeOf(c.p.api, h); said != "" {
				for _, h := range handles {
					_ = destroy(c.p.api, placeBuffer, h)
				}
				return nil, failure("run", fmt.Sprintf("the shape of result %d", i), said)
			}
		}
		shapes = &all
		x.shapes.Store(shapes)
	}
	out := make([]*Buffer, len(handles))
	for i, h := range handles {
		s := (*shapes)[i]
		out[i] = &Buffer{own: c.own(made, s.text, placeBuffer, h), shape: s}
	}
	return out, nil
}
