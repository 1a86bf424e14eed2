package option

import "errors"

// Job is how ranks are to be started where nobody has started them yet.
type Job struct {
	Nodes, PPN int    // of the allocation; 0: all, and what fits the machine
	Hostfile   string // the hosts, where there is no allocation, or instead of its
	Launcher   string // auto, local, srun, or the name of an mpiexec
	Profile    string // auto, or the name of a machine
	Share      string // a directory that all nodes see
	Bind       string // auto, core, none
	DryRun     bool
	Quiet      bool
}

// DefaultJob is what an empty command line means.
func DefaultJob() Job { return Job{Launcher: "auto", Profile: "auto", Bind: "auto"} }

// jobFlags are the flags of bench, bench launch and bench doctor alike that set j.
func jobFlags(j *Job) []flag {
	return []flag{
		{"nodes", "N", "nodes of the allocation to use (all)", groupJob, number(&j.Nodes, 1)},
		{"ppn", "N", "ranks per node (as the scheduler was asked, else one per device, else as -np)", groupJob,
			number(&j.PPN, 1)},
		{"hostfile", "FILE", "the hosts to use, one per line", groupJob, named(&j.Hostfile, "the name of a file")},
		{"launcher", "NAME", "auto, local, srun, or an mpiexec; auto is srun or mpiexec inside an allocation, else local",
			groupJob, named(&j.Launcher, "auto, local, srun, or the name of an mpiexec")},
		{"profile", "NAME", "auto, none, or the machine whose flags and environment to use: aurora polaris frontier perlmutter generic", groupJob, named(&j.Profile, "auto, none or a machine")},
		{"share", "DIR", "a directory that all nodes see, for the program (found automatically)", groupJob,
			named(&j.Share, "a directory")},
		{"bind", "HOW", "core: each rank on its own core; none (core where they fit)", groupJob, into(&j.Bind, bind)},
		{"dry-run", "", "print the command that would start the ranks and the reasons, then exit", groupJob, on(&j.DryRun)},
		{"q", "", "print only the table and errors, no comments and no progress", groupJob, on(&j.Quiet)},
	}
}

// named takes any text but none.
func named(to *string, what string) func(string) error {
	return into(to, func(s string) (string, error) {
		if s == "" {
			return "", errors.New("give " + what)
		}
		return s, nil
	})
}

func bind(s string) (string, error) {
	if s != "auto" && s != "core" && s != "none" {
		return "", errors.New("it must be core or none")
	}
	return s, nil
}
