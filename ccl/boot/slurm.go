package boot

import (
	"fmt"
	"strconv"
	"strings"
)

// A step id from firstSpecialStep on is Slurm's own: a batch script, the shell of
// salloc, a pending step. The variables there describe the allocation's future
// steps: PROCID=0 of NTASKS=N in a process that is alone.
const firstSpecialStep = 0xfffffff0

// hasStep reports whether this process is a task of a Slurm step.
func hasStep(v *vars) bool {
	step, err := strconv.ParseUint(v.getenv("SLURM_STEP_ID"), 10, 64)
	return err == nil && step < firstSpecialStep && v.has("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")
}

// readSlurm reads the step's variables. SLURM_NTASKS is the allocation's, or what
// another srun was asked for.
func readSlurm(v *vars) Launch {
	l := Launch{
		Rank: v.maybe("SLURM_PROCID"), Size: v.maybe("SLURM_STEP_NUM_TASKS"),
		Local: v.maybe("SLURM_LOCALID"), Locals: -1,
		Node: v.maybe("SLURM_NODEID"), Nodes: v.maybe("SLURM_STEP_NUM_NODES"),
		Job: v.getenv("SLURM_JOB_ID") + "." + v.getenv("SLURM_STEP_ID"),
	}
	if n, ok := tasksOn(v.getenv("SLURM_STEP_TASKS_PER_NODE"), l.Node); ok {
		l.Locals = n
	}
	return l
}

// tasksOn reads Slurm's tasks per node, such as 2(x3),1, for one node.
func tasksOn(list string, node int) (int, bool) {
	if node < 0 {
		return 0, false
	}
	for item := range strings.SplitSeq(list, ",") {
		count, times, repeated := strings.Cut(item, "(x")
		n, err := strconv.Atoi(count)
		if err != nil || n < 0 {
			return 0, false
		}
		k := 1
		if repeated {
			k, err = strconv.Atoi(strings.TrimSuffix(times, ")"))
			if err != nil || k < 1 || !strings.HasSuffix(times, ")") {
				return 0, false
			}
		}
		if node < k {
			return n, true
		}
		node -= k
	}
	return 0, false
}

// What a host list may stand for, lest a short one fills the memory.
const (
	maxHosts = 1 << 17
	maxName  = 255
)

// parseHostlist expands Slurm's host lists: n[1-3,07],m2 or r[1-2]n[1-4]-ib.
func parseHostlist(list string) ([]string, error) {
	var hosts []string
	for list != "" {
		// A comma within brackets does not end a name.
		depth, end := 0, len(list)
		for i, c := range []byte(list) {
			if c == '[' {
				depth++
			} else if c == ']' {
				depth--
			}
			if depth < 0 || depth > 1 {
				return nil, fault(Argument, "host list %s: its brackets do not match", clip(list))
			}
			if c == ',' && depth == 0 {
				end = i
				break
			}
		}
		names, err := expand(list[:end])
		if err != nil {
			return nil, err
		}
		if hosts = append(hosts, names...); len(hosts) > maxHosts {
			return nil, fault(Argument, "host list %s: more than %d hosts", clip(list), maxHosts)
		}
		if end == len(list) {
			break
		}
		list = list[end+1:]
		if list == "" {
			return nil, fault(Argument, "host list: it ends with a comma")
		}
	}
	return hosts, nil
}

// expand writes out the bracketed ranges of one item, the last varying fastest.
func expand(item string) ([]string, error) {
	prefix, rest, ranged := strings.Cut(item, "[")
	if !ranged {
		if item == "" || strings.Contains(item, "]") {
			return nil, fault(Argument, "host list: %s is not a host name", clip(item))
		}
		return []string{item}, nil
	}
	ranges, suffix, closed := strings.Cut(rest, "]")
	if !closed {
		return nil, fault(Argument, "host list %s: its brackets do not match", clip(item))
	}
	tails := []string{""}
	if suffix != "" {
		var err error
		if tails, err = expand(suffix); err != nil {
			return nil, err
		}
	}
	var hosts []string
	for r := range strings.SplitSeq(ranges, ",") {
		first, last, isRange := strings.Cut(r, "-")
		if !isRange {
			last = first
		}
		from, err1 := strconv.ParseUint(first, 10, 32)
		to, err2 := strconv.ParseUint(last, 10, 32)
		if err1 != nil || err2 != nil || from > to || (to-from+1)*uint64(len(tails)) > maxHosts {
			return nil, fault(Argument, "host list %s: %s is not a range", clip(item), clip(r))
		}
		for n := from; n <= to; n++ {
			digits := fmt.Sprintf("%0*d", min(len(first), maxName), n)
			for _, t := range tails {
				if len(prefix)+len(digits)+len(t) > maxName {
					return nil, fault(Argument, "host list %s: a host's name has at most %d bytes", clip(item), maxName)
				}
				hosts = append(hosts, prefix+digits+t)
			}
		}
		if len(hosts) > maxHosts {
			return nil, fault(Argument, "host list %s: more than %d hosts", clip(item), maxHosts)
		}
	}
	return hosts, nil
}
