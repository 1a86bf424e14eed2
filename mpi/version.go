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
