// Package prose words what bench tells people.
package prose

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Count is n of something: 1 rank, 2 ranks.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Wrap breaks text into lines of at most width bytes. A longer word has a line for itself.
func Wrap(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, line)
}

// Names are those of the elements of a list, in their order, as name says.
func Names[T any](list []T, name func(T) string) (names []string) {
	for _, x := range list {
		names = append(names, name(x))
	}
	return names
}

// Cause is err without the path of the file, for an error that has named it already.
func Cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
