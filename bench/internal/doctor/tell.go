package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/goccl/goccl/bench/internal/prose"
)

// Schema names the layout of the JSON.
const Schema = "goccl-doctor/1"

// document is the JSON.
type document struct {
	Schema   string    `json:"schema"`
	Launcher string    `json:"launcher"`
	Ranks    int       `json:"ranks"`
	Hosts    int       `json:"hosts"`
	Errors   int       `json:"errors"`
	Warnings int       `json:"warnings"`
	Findings []Finding `json:"findings"`
	// Fingerprint is that of rank 0's host, as bench -J stores it.
	Fingerprint map[string]string `json:"fingerprint"`
	Facts       []*facts          `json:"facts"`
	Routes      []route           `json:"routes"`
}

// count is how many findings are of a level.
func (e *exam) count(level string) (n int) {
	for _, f := range e.found {
		if f.Level == level {
			n++
		}
	}
	return n
}

func (e *exam) writeJSON(w io.Writer) error {
	d := document{
		Schema: Schema, Launcher: e.launcher, Ranks: len(e.ranks), Hosts: len(e.leaders()),
		Errors: e.count(failure), Warnings: e.count(warning), Findings: e.found, Facts: e.ranks, Routes: e.routes,
	}
	if len(e.ranks) > 0 {
		d.Fingerprint = e.ranks[0].Print
	}
	if d.Routes == nil {
		d.Routes = []route{}
	}
	j := json.NewEncoder(w)
	j.SetIndent("", "  ")
	return j.Encode(d)
}

func (e *exam) write(w io.Writer) error {
	var b strings.Builder
	for _, f := range e.found {
		fmt.Fprintf(&b, "%-8s %-18s %s\n", f.Level, f.Check, f.Text)
		if f.Remedy != "" && f.Level != ok {
			fmt.Fprintf(&b, "%-8s %-18s -> %s\n", "", "", f.Remedy)
		}
	}
	fmt.Fprintf(&b, "# doctor: %s on %s: %s, %s\n", prose.Count(len(e.ranks), "rank"),
		prose.Count(len(e.leaders()), "host"), prose.Count(e.count(failure), "error"),
		prose.Count(e.count(warning), "warning"))
	if e.count(failure) == 0 {
		fmt.Fprintf(&b, "# next: bench launch -np %d -- ./gpt -steps 50 (go build ./examples/gpt) trains a small model on these ranks\n", max(len(e.ranks), 2))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
