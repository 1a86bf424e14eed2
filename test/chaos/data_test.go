//go:build fault && linux

package chaos

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccl/goccl/test/cache"
)

var buildsFlag = flag.String("builds", "noasm", "what other builds the ranks of TestR6Data are of: noasm, v3, race, with commas between")

// A data case is a job of processes of one host or two, whose ranks make the same calls on memory of all sorts: Go's, MakeSlice's,
// mapped, and such as no other process can read; at odd offsets, in place or not, between guards. The ranks are of different builds,
// take themselves for CPUs of different makers, and have different minds about reading. In one case of three a rank is stopped at a
// random point, while another gives up and writes over its slices.
type dataCase struct {
	seed     uint64
	n, hosts int
	calls    int
	builds   []string // by rank; "" is this binary
	rows     []int    // of tuning's table, by rank; 0: its own
	read     []string // GOCCL_SHM_READ, by rank
	check    int
	stop     string // the point at which a rank is stopped; "": none is
	hit      int
	victim   int
	gives    int // the rank that gives up
}

func newDataCase(seed uint64, builds []string) *dataCase {
	rnd := rand.New(rand.NewPCG(seed, 0xda7a))
	d := &dataCase{seed: seed, n: 2 + rnd.IntN(3), hosts: 1, calls: 15 + rnd.IntN(30), check: rnd.IntN(3)}
	if rnd.IntN(5) == 0 {
		d.hosts = 2
	}
	alike, minds := rnd.IntN(3) == 0, []string{"", "", "1", "1", "0"}
	if rnd.IntN(2) == 0 { // else one mind that reads nothing decides for all
		minds = minds[:4]
	}
	for range d.n {
		d.builds = append(d.builds, append(builds, "", "")[rnd.IntN(len(builds)+2)])
		row := rnd.IntN(4)
		if alike {
			row = 0
		}
		d.rows, d.read = append(d.rows, row), append(d.read, minds[rnd.IntN(len(minds))])
	}
	if rnd.IntN(3) == 0 {
		points := []string{"cpu.read", "cpu.read", "cpu.post", "cpu.call", "cpu.write"}
		d.stop, d.hit, d.victim = points[rnd.IntN(len(points))], 1+rnd.IntN(20), rnd.IntN(d.n)
		d.gives = (d.victim + 1 + rnd.IntN(d.n-1)) % d.n
		if d.stop == "cpu.read" { // which takes ranks that read
			d.hosts, d.hit = 1, 1+rnd.IntN(8)
			for r := range d.read {
				d.read[r] = "1"
			}
		}
	}
	return d
}

func (d *dataCase) String() string {
	s := fmt.Sprintf("seed %d: %d ranks, %d hosts, %d calls, check %d, builds %q, rows %v, GOCCL_SHM_READ %q",
		d.seed, d.n, d.hosts, d.calls, d.check, d.builds, d.rows, d.read)
	if d.stop != "" {
		s += fmt.Sprintf(", rank %d is stopped at %s:%d, rank %d gives up", d.victim, d.stop, d.hit, d.gives)
	}
	return s
}

func (d *dataCase) job() job {
	var plan []string
	for r, row := range d.rows {
		if row > 0 {
			plan = append(plan, fmt.Sprintf("%d@cpu.family:1:from:%d", r, row))
		}
	}
	if d.stop != "" {
		plan = append(plan, fmt.Sprintf("%d@%s:%d:stop:700ms", d.victim, d.stop, d.hit))
	}
	j := job{n: d.n, hosts: d.hosts, processes: true, test: "TestDataRank", env: []string{
		fmt.Sprintf("CHAOS_DATA=%d", d.seed), "CHAOS_BUILDS=" + *buildsFlag, "GOCCL_FAULT=" + strings.Join(plan, ",")}}
	for _, b := range d.builds {
		j.builds = append(j.builds, binaries[b])
	}
	return j
}

// verdict: each rank has come to its end, without wrong data, and with an error only where a rank was stopped.
func (d *dataCase) verdict(text string) string {
	ended := 0
	for line := range strings.Lines(text) {
		what, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch what {
		case "LIE", "guard", "late", "broken", "panic:", "fatal":
			return strings.TrimSpace(line)
		case "fine":
			ended++
		case "failed":
			if ended++; d.stop == "" {
				return "nothing went wrong, but rank " + rest
			}
		}
	}
	if strings.Contains(text, "DATA RACE") {
		return "a data race"
	}
	if ended != d.n {
		return fmt.Sprintf("%d of %d ranks have ended", ended, d.n)
	}
	return ""
}

// binaries are this test in each build.
var binaries = map[string]string{"": os.Args[0]}

// buildAll makes the builds that the flag asks for, and names them.
func buildAll(t *testing.T) (names []string) {
	for name := range strings.SplitSeq(*buildsFlag, ",") {
		if name == "" {
			continue
		}
		tags, env, more := "fault", "CGO_ENABLED=0", []string(nil)
		switch name {
		case "noasm":
			tags = "fault,noasm"
		case "v3":
			env = "GOAMD64=v3"
		case "race":
			env, more = "CGO_ENABLED=1", []string{"-race"}
		default:
			t.Fatalf("-builds %s: there are noasm, v3 and race", name)
		}
		path := filepath.Join(t.TempDir(), "chaos-"+name)
		cache.Whole()
		cmd := exec.CommandContext(t.Context(), "go", append([]string{"test", "-c", "-tags", tags, "-o", path}, append(more, ".")...)...)
		cmd.Env = append(os.Environ(), env)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", name, err, out)
		}
		binaries[name] = path
		names = append(names, name)
	}
	return names
}

// TestR6Data runs data cases.
func TestR6Data(t *testing.T) {
	builds := buildAll(t)
	stopped, hosts := 0, 0
	n := campaign(t, "TestR6Data", func(seed uint64) trial { return newDataCase(seed, builds) }, func(c trial, verdict string) bool {
		d := c.(*dataCase)
		if d.stop != "" {
			stopped++
		}
		hosts += d.hosts - 1
		return verdict == ""
	})
	t.Logf("%d jobs: %d with a rank that was stopped, %d of two hosts", n, stopped, hosts)
}
