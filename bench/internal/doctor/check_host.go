package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goccl/goccl/bench/internal/prose"
)

const mib = 1 << 20

// shm: containers have 64 MiB by default, which NCCL fills with a few ranks.
func (e *exam) shm() {
	level, text, remedy := ok, "", ""
	for _, f := range e.leaders() {
		switch s := f.Shm; {
		case s.Total == 0:
			continue
		case s.Free < 16*mib:
			level, remedy = failure, "remove stale files there, or in a container give --shm-size=1g"
			text = fmt.Sprintf("%s: /dev/shm has %d MiB left of %d: libraries that use it end with a bus error", f.Host,
				s.Free/mib, s.Total/mib)
		case s.Total <= 64*mib && level == ok:
			level, remedy = warning, "in a container give --shm-size=1g"
			text = fmt.Sprintf("%s: /dev/shm has only %d MiB: too few for NCCL with more than a few ranks", f.Host, s.Total/mib)
		case text == "":
			text = fmt.Sprintf("%d MiB free", s.Free/mib)
		}
	}
	if text != "" {
		e.say("/dev/shm", level, remedy, "%s", text)
	}
}

func (e *exam) memlock() {
	for _, f := range e.leaders() {
		if f.Memlock != unlimited && f.RDMA {
			e.say("memlock", failure, "ulimit -l unlimited in the job, or in a container --ulimit memlock=-1",
				"%s: only %d KiB can be locked, but its network adapter needs locked memory", f.Host, f.Memlock>>10)
			return
		}
	}
	e.say("memlock", ok, "", "no network adapter here needs more")
}

// files: a rank holds a connection to each host at most, and a few for itself.
func (e *exam) files() {
	need := uint64(len(e.leaders())*2 + 256)
	for _, f := range e.ranks {
		if f.Files < need {
			e.say("open files", warning, "ulimit -n "+strconv.FormatUint(need, 10),
				"rank %d on %s may open %d files: too few for %d hosts", f.Rank, f.Host, f.Files, len(e.leaders()))
			return
		}
	}
}

// affinity looks for ranks of a host that share cores.
func (e *exam) affinity() {
	for _, f := range e.leaders() {
		ranks := e.ofHost(f.Host)
		union, alone := map[int]bool{}, map[int][]int{}
		for _, r := range ranks {
			if r.CPUs == nil {
				return // this system does not tell
			}
			for _, c := range r.CPUs {
				union[c] = true
			}
			if len(r.CPUs) == 1 {
				alone[r.CPUs[0]] = append(alone[r.CPUs[0]], r.Rank)
			}
		}
		for _, core := range slices.Sorted(maps.Keys(alone)) {
			if len(alone[core]) > 1 {
				e.say("affinity", failure, "have the launcher bind each rank to cores of its own, or none: srun --cpu-bind=cores, mpiexec --cpu-bind depth, mpirun --bind-to none, bench -bind core",
					"%s: ranks %s are all bound to core %d: each waits while another computes", f.Host,
					strings.Join(prose.Names(alone[core], strconv.Itoa), ", "), core)
				return
			}
		}
		if len(union) < len(ranks) {
			e.say("affinity", warning, "start at most "+strconv.Itoa(len(union))+
				" ranks a node (-ppn), or ask the scheduler for more cores (--cpus-per-task, ncpus)",
				"%s: %d ranks share %d cores: times are those of the scheduler", f.Host, len(ranks), len(union))
			return
		}
		if len(union) == len(ranks) && len(ranks) > 1 && f.Cores > len(union) {
			e.say("affinity", warning, "give each rank two cores or more",
				"%s: %d ranks have %d cores of %d: a rank's helper threads share its core", f.Host, len(ranks), len(union), f.Cores)
			return
		}
	}
	e.say("affinity", ok, "", "no ranks share a core by force")
}

func (e *exam) modes() {
	for _, m := range []struct{ check, key, bad, text, remedy string }{
		{"huge pages", "huge pages", "never", "transparent huge pages are off: large buffers cost more to touch",
			"echo madvise > /sys/kernel/mm/transparent_hugepage/enabled (root)"},
		{"frequency", "governor", "powersave", "the cores' frequency follows the load (powersave): small sizes vary",
			"cpupower frequency-set -g performance (root)"},
	} {
		e.everywhere(m.check, m.key, func(v string) (string, string) {
			if v == m.bad {
				return m.text, m.remedy
			}
			return "", ""
		})
	}
}

func (e *exam) quota() {
	e.everywhere("cpu quota", "cgroup", func(v string) (string, string) {
		quota, period, _ := strings.Cut(v, " ")
		if q, p := atoi(quota), atoi(period); q > 0 && p > 0 {
			return fmt.Sprintf("the container may use the time of %.1f cores, and is stopped when it has used that",
				float64(q)/float64(p)), "give the container whole cores (--cpuset-cpus), not a quota (--cpus)"
		}
		return "", ""
	})
}

// everywhere looks at one entry of each host's fingerprint, and tells of the first
// that is wrong.
func (e *exam) everywhere(check, key string, wrong func(string) (text, remedy string)) {
	last := ""
	for _, f := range e.leaders() {
		v := f.Print[key]
		if text, remedy := wrong(v); text != "" {
			e.say(check, warning, remedy, "%s: %s", f.Host, text)
			return
		}
		if v != "" {
			last = v
		}
	}
	if last != "" {
		e.say(check, ok, "", "%s", last)
	}
}

func (e *exam) load() {
	for _, f := range e.leaders() {
		load, err := strconv.ParseFloat(f.Load, 64)
		if err == nil && load > 0.5*float64(f.Cores)+float64(len(e.ofHost(f.Host))) {
			e.say("load", warning, "see what else computes there (top), and measure when it has ended",
				"%s: the load is %.1f on %d cores: other programs compute there", f.Host, load, f.Cores)
			return
		}
	}
	e.say("load", ok, "", "low")
}
