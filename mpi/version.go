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

// readsWrong reports whether MPI_File_read_at_all of a library of that version, as shortVersion has it, gets ranks wrong data.
// Three of the four ways of Open MPI 4.1.4 to read collectively (fcoll vulcan, which it chooses, dynamic and dynamic_gen2) leave
// zeros where two ranks read parts of the same bytes; those of 5.0.11 do not. ReadAtAll has each rank read for itself there,
// which is what its fourth way does.
func readsWrong(version string) bool {
	v, ok := strings.CutPrefix(version, "Open MPI ")
	return ok && len(v) > 1 && v[0] < '5' && v[1] == '.'
}
