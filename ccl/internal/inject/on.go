//go:build fault

package inject

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/internal/environ"
)

// On says whether this build can inject faults.
const On = true

// plan is one fault that is to happen.
type plan struct {
	point, action, arg string
	hit                int
}

var faults = struct {
	sync.Mutex
	plans []plan
	hits  map[string]int
	calls map[string]func()
}{hits: map[string]int{}, calls: map[string]func(){}}

func init() {
	if err := Plan(environ.Fault.Get()); err != nil {
		fmt.Fprintln(os.Stderr, "GOCCL_FAULT:", err)
		os.Exit(2)
	}
}

// Plan replaces what is to happen in this process, and counts all points from 0 again.
func Plan(text string) error {
	var plans []plan
	for one := range strings.SplitSeq(text, ",") {
		if rank, rest, ok := strings.Cut(one, "@"); ok {
			if rank != environ.Rank.Text(os.Getenv) {
				continue
			}
			one = rest
		}
		if one == "" {
			continue
		}
		f := strings.SplitN(one, ":", 4)
		if len(f) < 3 {
			return fmt.Errorf("%q is not point:hit:action", one)
		}
		hit, err := strconv.Atoi(f[1])
		if err != nil || hit < 1 {
			return fmt.Errorf("%q: hits are counted from 1", one)
		}
		p := plan{point: f[0], hit: hit, action: f[2]}
		if len(f) == 4 {
			p.arg = f[3]
		}
		plans = append(plans, p)
	}
	faults.Lock()
	defer faults.Unlock()
	faults.plans, faults.hits = plans, map[string]int{}
	mistake := ""
	for _, p := range plans {
		if p.action == "wrong" {
			mistake = p.point
		}
	}
	wrong.Store(&mistake)
	return nil
}

// Set says what the action of that name does: the test's own.
func Set(action string, f func()) {
	faults.Lock()
	defer faults.Unlock()
	faults.calls[action] = f
}

// take is the fault that is due as point is passed once more.
func take(point string) (plan, func(), bool) {
	faults.Lock()
	defer faults.Unlock()
	if len(faults.plans) == 0 {
		return plan{}, nil, false
	}
	faults.hits[point]++
	for _, p := range faults.plans {
		if p.point == point && p.hit == faults.hits[point] {
			return p, faults.calls[p.action], true
		}
	}
	return plan{}, nil, false
}

// At passes a named point.
func At(point string) {
	if p, f, ok := take(point); ok {
		p.happen(f)
	}
}

// Cut reports whether the connection at a named point is to be closed.
func Cut(point string) bool {
	p, f, ok := take(point)
	switch {
	case !ok:
		return false
	case p.action == "cut" || p.action == "drop":
		p.tell()
		return true
	}
	p.happen(f)
	return false
}

// Bytes is b as it leaves a named point.
func Bytes(point string, b []byte) []byte {
	p, f, ok := take(point)
	switch {
	case !ok || len(b) == 0:
	case p.action == "flip":
		p.tell()
		b = append([]byte(nil), b...)
		b[(p.hit*31)%len(b)] ^= 1 << (p.hit % 8)
	default:
		p.happen(f)
	}
	return b
}

// wrong is the mistake that is planted: "" for none. It is apart from the others, since it stands
// where none is to be waited for.
var wrong atomic.Pointer[string]

// Wrong reports whether the mistake of that name is planted.
func Wrong(mistake string) bool { return *wrong.Load() == mistake }

// Yield has other goroutines go first, where a mistake leaves something open for a moment: what
// happens at the same instant may find it so. A scheduler may do that anyway, and rarely does.
func Yield() { runtime.Gosched() }

// From is where the counters of a named point begin: at 0, unless a fault says otherwise.
func From(point string) uint32 {
	faults.Lock()
	defer faults.Unlock()
	for _, p := range faults.plans {
		if p.point == point && p.action == "from" {
			start, _ := strconv.ParseUint(p.arg, 10, 32)
			return uint32(start)
		}
	}
	return 0
}

// tell writes down that the fault happens, and when.
func (p plan) tell() {
	fmt.Fprintf(os.Stderr, "fault: %s at %s, pass %d, time %d\n", p.action, p.point, p.hit, time.Now().UnixNano())
}

func (p plan) happen(f func()) {
	limit, _ := time.ParseDuration(p.arg)
	p.tell()
	switch p.action {
	case "kill":
		signal("KILL")
		select {}
	case "stop":
		if limit > 0 {
			// A stopped process cannot wake itself.
			wake := exec.Command("sh", "-c", fmt.Sprintf("sleep %g; kill -CONT %d", limit.Seconds(), os.Getpid()))
			wake.Start()
			defer wake.Wait()
		}
		signal("STOP")
	case "exit":
		os.Exit(0)
	case "panic":
		panic("fault: " + p.point)
	case "delay":
		time.Sleep(limit)
	case "gc":
		for end := time.Now().Add(50 * time.Millisecond); time.Now().Before(end); {
			runtime.GC()
		}
	default:
		if f != nil {
			f()
		}
	}
}
