// Package profile knows machines: how many ranks a node takes, which cores they are
// bound to, and what their libraries have to be told. Sources: the centres' public
// guides (ALCF's Aurora and Polaris, OLCF's Frontier, NERSC's Perlmutter) and HPE's
// settings for NCCL and RCCL on Slingshot (HewlettPackard/shs-ccl-docs).
package profile

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/bench/internal/prose"
)

// Setting is one variable for the ranks, and why.
type Setting struct {
	Name, Value, Reason string
	// Prepend puts Value, a directory, before what the variable holds, if it exists.
	Prepend bool
	// Above is how many nodes a job must exceed for the setting to be made.
	Above int
}

// Profile is a machine.
type Profile struct {
	Name string
	// Ranks is how many ranks a node takes; nil or 0: as the scheduler was asked.
	Ranks func(getenv func(string) string) (n int, reason string)
	Env   []Setting

	launcher string // the kind that flags are for; "" if there are none
	flags    func(getenv func(string) string, perNode int) (flags []string, reason string)
}

// Flags are those of a launcher for so many ranks a node.
func (p *Profile) Flags(getenv func(string) string, launcher string, perNode int) (flags []string, reason string) {
	if p.flags == nil || launcher != p.launcher {
		return nil, ""
	}
	return p.flags(getenv, perNode)
}

var profiles = []*Profile{&aurora, &polaris, &frontier, &perlmutter, &generic, &none}

var generic = Profile{Name: "generic"}
var none = Profile{Name: "none"}

// Names are the profiles there are.
func Names() []string { return prose.Names(profiles, func(p *Profile) string { return p.Name }) }

// Named is the profile of that name, whatever the machine.
func Named(name string) (*Profile, error) {
	if i := slices.Index(Names(), name); i >= 0 {
		return profiles[i], nil
	}
	if n := option.Nearest(name, Names()); n != "" {
		return nil, fmt.Errorf("-profile %s: no such machine; did you mean %s?", name, n)
	}
	return nil, fmt.Errorf("-profile %s: no such machine; there are %s", name, strings.Join(Names(), " "))
}

// Of is the profile of the machine that a job with this environment and these hosts
// runs on; generic if it is none of those known.
func Of(getenv func(string) string, hosts []string) *Profile {
	for _, p := range []struct {
		*Profile        // whose name is also that of the cluster, and of the hosts' domain
		prefix   string // of short host names
	}{{&aurora, "aurora-"}, {&polaris, "polaris-"}, {&frontier, "frontier"}, {&perlmutter, "perlmutter"}} {
		for _, name := range []string{"SLURM_CLUSTER_NAME", "NERSC_HOST", "LMOD_SYSTEM_NAME"} {
			if getenv(name) == p.Name {
				return p.Profile
			}
		}
		for _, host := range append(slices.Clip(hosts), getenv("PBS_O_HOST")) {
			if strings.Contains(host+".", "."+p.Name+".") || strings.HasPrefix(host, p.prefix) {
				return p.Profile
			}
		}
	}
	// HPE's cabinets: x4xxx are Aurora's, x3xxx Polaris's. Only under PBS, since other
	// machines number theirs alike.
	if getenv("PBS_JOBID") != "" && len(hosts) > 0 {
		switch {
		case strings.HasPrefix(hosts[0], "x4"):
			return &aurora
		case strings.HasPrefix(hosts[0], "x3"):
			return &polaris
		}
	}
	return &generic
}

// Settings are what the ranks get in addition to environ, on so many nodes. What the
// user has set stays.
func (p *Profile) Settings(getenv func(string) string, nodes int) (made []Setting) {
	for _, s := range p.Env {
		had := getenv(s.Name)
		before := slices.IndexFunc(made, func(m Setting) bool { return m.Name == s.Name })
		if before >= 0 {
			had = made[before].Value
		}
		switch {
		case nodes <= s.Above:
			continue
		case s.Prepend:
			if _, err := os.Stat(s.Value); err != nil || slices.Contains(strings.Split(had, ":"), s.Value) {
				continue
			}
			if had != "" {
				s.Value += ":" + had
			}
		case had != "":
			continue
		}
		if before >= 0 {
			made = slices.Delete(made, before, before+1)
		}
		made = append(made, s)
	}
	return made
}
