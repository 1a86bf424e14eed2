package ccl

import (
	"time"

	"github.com/goccl/goccl/internal/backoff"
	"github.com/goccl/goccl/internal/lived"
)

// togetherWait is how long Close waits for the other ranks of the host, where the library wants all
// of them.
const togetherWait = 100 * time.Millisecond

// closeLibrary frees c's end of the library's communicator. From NCCL 2.31 on the ranks of a host
// free theirs together, and each waits for the others without a limit. Close is not collective: so
// the ranks tell each other that they close, and where one does not come, those that do wait for
// what they have issued, and leave apart. That cuts off what the library still has to send to
// other hosts for calls that have ended on the device: so where there are such, all that are alive
// are waited for first.
func closeLibrary(c *Comm) error {
	if !c.lib.loaded.Gathers {
		return c.lib.end.Close()
	}
	limit := c.opt.patience()
	wait := togetherWait
	if c.eng.Topology().Nodes() > 1 {
		wait = limit
	}
	failed := func() bool { return c.life.failure.Load() != nil || c.eng.Failure() != nil }
	if !failed() && c.eng.Together(wait) {
		return c.lib.end.Close()
	}
	if failed() { // the goroutine that found it may not have aborted yet, and without that Close would wait for the others
		c.lib.end.Abort()
		return c.lib.end.Close()
	}
	c.devices.settle(lived.For(limit), failed)
	return c.lib.end.CloseApart()
}

// settle waits until the streams have passed all that was issued, at most until over says so. What is being
// captured runs later, if at all.
func (ds *devices) settle(over, failed func() bool) {
	wait := backoff.Sleep{First: deviceNapMin, Most: deviceNapMax}
	for _, d := range ds.all() {
		for !d.idle() && !d.ended.Load() && !failed() && !over() {
			if d.look() != nil {
				break
			}
			wait.Next()
		}
	}
}
