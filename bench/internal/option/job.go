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

// jobFlag is a flag of Job, of bench, bench launch and bench doctor alike.
type jobFlag struct {
	name, value, help string
	set               func(j *Job, s string) error
}

func jobTable() []jobFlag {
	return []jobFlag{
		{"nodes", "N", "nodes of the allocation to use (all)", func(j *Job, s string) (err error) { j.Nodes, err = whole(s, 1); return err }},
		{"ppn", "N", "ranks per node (as the scheduler was asked, else one per device, else as -np)", func(j *Job, s string) (err error) { j.PPN, err = whole(s, 1); return err }},
		{"hostfile", "FILE", "the hosts to use, one per line", named(func(j *Job) *string { return &j.Hostfile }, "the name of a file")},
		{"launcher", "NAME", "auto, local, srun, or an mpiexec; auto is srun or mpiexec inside an allocation, else local", named(func(j *Job) *string { return &j.Launcher }, "auto, local, srun, or the name of an mpiexec")},
		{"profile", "NAME", "auto, none, or the machine whose flags and environment to use: aurora polaris frontier perlmutter generic", named(func(j *Job) *string { return &j.Profile }, "auto, none or a machine")},
		{"share", "DIR", "a directory that all nodes see, for the program (found automatically)", named(func(j *Job) *string { return &j.Share }, "a directory")},
		{"bind", "HOW", "core: each rank on its own core; none (core where they fit)", setBind},
		{"dry-run", "", "print the command that would start the ranks and the reasons, then exit", func(j *Job, _ string) error { j.DryRun = true; return nil }},
		{"q", "", "print only the table and errors, no comments and no progress", func(j *Job, _ string) error { j.Quiet = true; return nil }},
	}
}

// named takes any text but none, for a field of Options or of Job.
func named[S any](field func(*S) *string, what string) func(*S, string) error {
	return func(o *S, s string) error {
		if s == "" {
			return errors.New("give " + what)
		}
		*field(o) = s
		return nil
	}
}

func setBind(j *Job, s string) error {
	if s != "auto" && s != "core" && s != "none" {
		return errors.New("it must be core or none")
	}
	j.Bind = s
	return nil
}

// jobFlags are those of Job as flags of bench.
func jobFlags() (flags []flag) {
	for _, f := range jobTable() {
		flags = append(flags, flag{f.name, f.value, f.help, groupJob, func(o *Options, s string) error { return f.set(&o.Job, s) }})
	}
	return flags
}
