package engine

import (
	"slices"
)

// Backend is a library that can carry out calls: all that package ccl, bench and the documents know
// of it. What is known of it without its engine is in its row, which every build has; the rest is
// added where the engine is compiled in.
type Backend struct {
	Name     string // of Options.Backend, and of the build tag: "nccl"
	Title    string // in sentences: "NCCL"
	Platform string // the package of its devices and their memory: "cuda"; "" if it takes memory of any

	Files    Files
	Hardware Hardware
	Aliases  []string  // what else a user may call it: "nvidia"
	Settings []string  // the variables that the library reads; NAME* stands for all variables that begin with NAME
	Visible  []string  // the variables that say which devices a rank sees
	Harms    []Harm    // settings that are known to hurt
	Failures []Failure // known errors of the library, each with a remedy

	Sole bool // it takes one rank of a job per process
	// Uninterruptible: a call that waits inside it for a lost rank does not end, so a Comm that has
	// failed keeps its ranks in it, and no rank can be replaced.
	Uninterruptible bool
	// Choose is the device that the rank which is the local-th of locals on its host would use: want where
	// that is not negative, -1 for host memory. It must not be slow, load no library that cannot be left
	// loaded, and its error says what is there and what to do. It is nil for a library of host memory alone.
	Choose func(want, local, locals int) (device int, err error)
	// Open loads the library and is called before any rank is told to go on, so an error keeps
	// the Comm from being made on all ranks: a missing library, with all that was tried. It is nil where
	// the engine is not compiled in.
	Open func() (*Library, error)
	// Share holds what the library uses together with others, until letGo is called; left says that
	// calls were left inside. It is nil where there is nothing to hold.
	Share   func() (letGo func(left bool) error, err error)
	Devices Devices
}

// Files are where a library is looked for.
type Files struct {
	Env    string   // the variable that names the file; where it is set, nothing else is tried
	Names  []string // as the loader finds them, best first
	Advice string   // what to do where there is none: "install NCCL 2.10 or newer"
}

// Hardware is by what a machine is known to have a device of a backend.
type Hardware struct {
	Vendor string // "NVIDIA"; "" where there are no devices
	Node   string // the file that is there with the driver; "" where only render nodes tell, by PCI
	PCI    string // the vendor's PCI number, as sysfs has it
}

// Harm is a setting known to hurt.
type Harm struct {
	Name   string   // of the variable
	Values []string // nil: any
	Why    string
	Remedy string
}

// Failure is what a library is known to report in words of its own.
type Failure struct {
	Pattern string // a regular expression
	Advice  string
}

// CPU is the engine that needs no library and that every Comm has: it is no row, and in no list of
// what a build may lack.
var CPU = Backend{Name: "cpu", Title: "the CPU engine"}

// rows are the libraries, in the order in which one is chosen for a Comm that asks for none.
var rows = []*Backend{&NCCL, &RCCL, &OneCCL, &MPI}

// Backends are the libraries that goccl knows, those of this build and of others, in the order in which one is chosen.
func Backends() []*Backend { return rows }

// Names are what Options.Backend may be, in this build or in others: "cpu", and those of the Backends.
func Names() []string {
	names := []string{CPU.Name}
	for _, b := range rows {
		names = append(names, b.Name)
	}
	return names
}

// Find is the backend of that name, nil if there is none.
func Find(name string) *Backend {
	if i := slices.IndexFunc(rows, func(b *Backend) bool { return b.Name == name }); i >= 0 {
		return rows[i]
	}
	return nil
}

// Variables are the names of all that backends read.
func Variables() (names []string) {
	for _, b := range rows {
		names = append(append(names, b.Settings...), b.Visible...)
	}
	return names
}

// Register adds b to the backends, in the place of the row of its name, and otherwise behind all
// others. It is for init of the file with b's build tag.
func Register(b Backend) {
	if row := Find(b.Name); row != nil {
		*row = b
		return
	}
	rows = append(slices.Clip(rows), &b)
}
