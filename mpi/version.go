package mpi

import (
	"regexp"
	"strings"
)

// versions find the name and the number in what MPI_Get_library_version says.
var versions = []struct {
	pattern *regexp.Regexp
	name    string
}{
	{regexp.MustCompile(`^Open MPI v(\S+?),`), "Open MPI"},
	{regexp.MustCompile(`^Intel\(R\) MPI Library (\S+)`), "Intel MPI"},
	{regexp.MustCompile(`CRAY MPICH version (\S+)`), "Cray MPICH"},
	{regexp.MustCompile(`^MVAPICH2? Version\s*:\s*(\S+)`), "MVAPICH"},
	{regexp.MustCompile(`^MPICH Version\s*:\s*(\S+)`), "MPICH"},
}

// shortVersion is a library's version as in "MPICH 4.0.2", or its first line.
func shortVersion(text string) string {
	for _, v := range versions {
		if m := v.pattern.FindStringSubmatch(text); m != nil {
			return v.name + " " + m[1]
		}
	}
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimSpace(line)
}

// alone reports whether ReadAtAll, or WriteAtAll, has each rank move its own bytes, since the
// library's collective function cannot be relied on. version is as shortVersion has it.
//
// Open MPI's collective writes (4.1.4 and 5.0.11) report success on a disk that is full: what was
// written is lost. Its collective reads leave zeros where two ranks read parts of the same bytes,
// in 4.1.4 with three of its four ways to do it (fcoll vulcan, which it chooses, dynamic and
// dynamic_gen2), and not in 5.0.11. The writes and reads of one rank are right.
func alone(version string, write bool) bool {
	v, ok := strings.CutPrefix(version, "Open MPI ")
	return ok && (write || len(v) > 1 && v[0] < '5' && v[1] == '.')
}
