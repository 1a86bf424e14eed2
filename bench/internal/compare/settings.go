package compare

import (
	"maps"
	"strconv"

	"github.com/goccl/goccl/bench/internal/report"
)

// settings are those of c without which two runs measure different things, by what they are called in the text; what
// is as usual is left out.
func settings(c *report.Config) map[string]string {
	yes := map[bool]string{true: "yes"}
	s := map[string]string{
		"engine": c.Engine, "transport": c.Transport, "memory": c.Memory, "groups (-split)": c.Split, "matrix": c.Matrix,
		"hints":           c.Hints,
		"registered (-R)": yes[c.Registered], "symmetric windows (-R 2)": yes[c.Windows],
		"caches swept (-flush)": yes[c.Flush],
	}
	for name, n := range map[string]int{
		"ranks": c.Ranks, "processes": c.Processes, "hosts": c.Hosts, "calls per iteration (-m)": c.Agg,
		"misaligned by (-u)": c.Misalign, "sets of buffers (-rotate)": c.Rotate, "graph launches (-G)": c.Graph,
	} {
		if n != 0 {
			s[name] = strconv.Itoa(n)
		}
	}
	maps.DeleteFunc(s, func(_, text string) bool { return text == "" })
	return s
}
