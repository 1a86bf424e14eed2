package xla

import (
	"fmt"
	"sync"

	"github.com/goccl/goccl/internal/lent"
)

// owned is something of the plugin's that has to be given back: a buffer or a program. It is given
// back when it was released and no call uses it any more.
type owned struct {
	c       *Client
	res     *lent.Resource
	destroy int // the function's place

	mu       sync.Mutex
	users    int
	donating bool // a call is about to take it
	released bool
	donated  bool
}

func (c *Client) own(made *lent.Origin, what string, destroy int, handle uintptr) *owned {
	c.live.Add(1)
	o := &owned{c: c, destroy: destroy}
	o.res = lent.NewAt(made, "xla", c.hardware, what, handle, o.closed)
	return o
}

// use returns the handle, which is good until done.
func (o *owned) use() (uintptr, error) {
	if o == nil {
		return 0, fmt.Errorf("xla: nil in place of what was made: %w", ErrClosed)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	h, err := o.good()
	if err == nil {
		o.users++
	}
	return h, err
}

// good is the handle, if calls may use it. o.mu is held.
func (o *owned) good() (uintptr, error) {
	if o.donating {
		return 0, fmt.Errorf("xla: %s, made at %s, is being donated to a program: give it once", o.res.What, o.res.Made)
	}
	h, err := o.res.Use()
	if err != nil && o.donated {
		return 0, fmt.Errorf("donated to a program: %w", err)
	}
	return h, err
}

func (o *owned) done() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.users--; o.users == 0 && o.released {
		_ = o.giveBack()
	}
}

// take is use by a call that may take the thing; taken or left ends it. From one to the other
// nobody else uses or frees it.
func (o *owned) take() (uintptr, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	h, err := o.good()
	if err != nil {
		return 0, err
	}
	if o.users > 0 {
		return 0, fmt.Errorf("xla: %s, made at %s, cannot be donated while another call uses it, or if it is given twice",
			o.res.What, o.res.Made)
	}
	o.donating = true
	return h, nil
}

// left undoes take.
func (o *owned) left() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.donating = false
}

// taken is release of what take has returned.
func (o *owned) taken() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.donating, o.donated = false, true
	_ = o.res.Close()
}

// release gives the thing back, once, as soon as no call uses it.
func (o *owned) release() error {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.donating {
		return fmt.Errorf("xla: %s, made at %s, is being donated to a program", o.res.What, o.res.Made)
	}
	return o.res.Close()
}

// closed is what the Close of o.res does, once. o.mu is held.
func (o *owned) closed(uintptr) error {
	o.released = true
	if o.users > 0 {
		return nil
	}
	return o.giveBack()
}

func (o *owned) giveBack() error {
	defer o.c.live.Add(-1)
	defer viewed.sweep()
	return failure("free", o.res.What, destroy(o.c.p.api, o.destroy, o.res.H))
}

// OnLeak sets a function that is called for each object that the garbage collector finds and that
// was never released. Its text says what the object is and which line made it. nil ends that.
// GOCCL_LEAKS=1 in the environment logs the same. It is the function of packages cuda and rocm,
// too.
func OnLeak(f func(text string)) { lent.OnLeak(f) }
