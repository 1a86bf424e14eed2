package ccl

import (
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/value"
)

// SetBackend compiles b in, in the place of the backend of its name, for one test.
func SetBackend(t testing.TB, b engine.Backend) {
	old := *engine.Find(b.Name)
	engine.Register(b)
	t.Cleanup(func() { engine.Register(old) })
}

// EngineOf is what c has beside the CPU engine.
func EngineOf(c *Comm) engine.Engine { return c.lib.end.Engine }

// SetEngine replaces it.
func SetEngine(c *Comm, e engine.Engine) { c.lib.end.Engine = e }

// Agreed is what must be the same on all ranks.
func Agreed(o Options) string { return o.agreed("", auth.ByKernel()) }

// HasSecret reports whether the job of c has one.
func HasSecret(c *Comm) bool { return c.eng.Control().Site.Job.Net.Secret.Known() }

// DataPort is where a stranger would come.
func DataPort(c *Comm) netip.AddrPort { return c.eng.Control().Site.Job.Net.TCP.Addr() }

// OtherInterface reports whether other hosts can reach this one.
func OtherInterface() bool {
	at, _, err := tcp.Pick("", netip.Addr{})
	return err == nil && !at.IsLoopback()
}

// UnmadeInJob is how a Comm that is still being made names ranks that did not answer.
func UnmadeInJob(of ...int) string { return reporter{new(Comm)}.inJob(1, of) }

// PackText packs texts for n ranks, as ScatterValues does, and returns their heads and the reason why it cannot.
func PackText(vs []string, n, limit int) (heads []uint64, reason string) {
	h, _, p := packAll(vs, n, limit)
	return h, string(p.data)
}

// ValueSizes reads heads.
func ValueSizes(h []uint64, limit int) (lengths []int, refused int, err error) {
	return heads(h).sizes(limit)
}

// EncodeValue and DecodeValue are what values go through.
func EncodeValue[V any](v V) ([]byte, error) {
	return value.Encode(v, MaxValue)
}

func DecodeValue[V any](data []byte) (V, error) { return value.Decode[V](data) }

// FailPool fails what the ranks and the spares of c's job wait in, as the loss of a spare does.
func FailPool(c *Comm, why error) { c.reserve.current().Abort(why) }

// Die makes this rank one that is lost.
func Die(c *Comm) { c.eng.Control().Die(nil) }

// HasEnded reports whether m has ended, without asking how.
func HasEnded(m Message) bool {
	select {
	case <-m.of.Done():
		return true
	default:
		return false
	}
}

// OpenMail opens the mail of c, as a message does that has found c open.
func OpenMail(c *Comm) error {
	_, err := c.life.letters.open(c)
	return err
}

// IsClosing reports whether c is closed, or a Close is under way; HasClosed whether that has returned.
func IsClosing(c *Comm) bool { return c.life.closed.Load() }

func HasClosed(c *Comm) bool {
	select {
	case <-c.life.over:
		return true
	default:
		return false
	}
}

// HoldIssue has c be as while a goroutine issues a call, and HoldPush s, until the function is called that they return.
func HoldIssue(c *Comm) (release func()) {
	atomic.StoreUint64(&c.backlog.issuing, 1)
	return func() { atomic.StoreUint64(&c.backlog.issuing, 0) }
}

func HoldPush(s *HostStream) (release func()) {
	s.mu.Lock()
	atomic.StoreUint64(&s.pushing, 1)
	return func() {
		atomic.StoreUint64(&s.pushing, 0)
		s.mu.Unlock()
	}
}

// IsIssuing reports whether a goroutine issues a call on c, or waits in one for what is queued.
func IsIssuing(c *Comm) bool { return atomic.LoadUint64(&c.backlog.issuing) != 0 }

// Opponent is whom a host measures in a round.
var Opponent = opponent

// CostsOf are what links cost, for algo.Tour, and MeasuredLinks how many links between hosts of its job c knows.
var CostsOf = costsOf

func MeasuredLinks(c *Comm) int { return len(c.opt.links.table.Load().measured) }

// KeepLinks orders c's hosts by links between them, as a Reorder that measures these.
func KeepLinks(c *Comm, links [][]HostLink) { keepLinks(links, c) }

// LinksOf are those between c's hosts that are known, and OrderOf is the order of the hosts in rings.
func LinksOf(c *Comm) [][]HostLink { return c.opt.links.between(hostsOf(c.eng)) }

func OrderOf(c *Comm) (hosts []int) {
	ring := c.eng.Control().Group.Ring()
	for i := range ring.Nodes() {
		hosts = append(hosts, c.eng.Topology().Node(ring.Rank(i, 0)))
	}
	return hosts
}
