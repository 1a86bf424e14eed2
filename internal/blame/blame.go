// Package blame tells the launcher on this host which rank the ranks hold to be the cause of a failure.
//
// The rank that ends first is seldom the one at fault: what calls Abort, or panics, may take its time to end, while
// the others have their errors and go. So boot.Spawn gives its ranks a pipe, and a rank whose Comm fails writes down
// there whom its error names. Spawn reads it when all have ended.
package blame

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/goccl/goccl/internal/environ"
)

// told is set once this process has named a rank: its first failure is the one that counts.
var told atomic.Bool

// Name tells the launcher that rank, of the job, is the cause of this process's failure. It does nothing where no
// launcher wants to know, and never waits.
func Name(rank int) {
	if text := environ.BlameFD.Get(); text != "" && !told.Swap(true) {
		write(text, strconv.Itoa(rank)+"\n")
	}
}

// Value is what environ.BlameFD holds for the pipe with that descriptor in the rank. Its inode tells it from another
// file that a program in between may have opened under that number.
func Value(fd int, inode uint64) string { return fmt.Sprintf("%d:%d", fd, inode) }

// parse reads what Value made.
func parse(text string) (fd int, inode uint64, ok bool) {
	a, b, _ := strings.Cut(text, ":")
	fd, err := strconv.Atoi(a)
	inode, err2 := strconv.ParseUint(b, 10, 64)
	return fd, inode, err == nil && err2 == nil && fd > 2
}

// Most returns the rank of a job of size that most lines of text name, and the first of those that are named as often;
// ok is false where none is.
func Most(text []byte, size int) (rank int, ok bool) {
	votes, most := map[int]int{}, 0
	for line := range strings.Lines(string(text)) {
		n, err := strconv.Atoi(strings.TrimSuffix(line, "\n"))
		if err != nil || n < 0 || n >= size || !strings.HasSuffix(line, "\n") {
			continue
		}
		votes[n]++
		most = max(most, votes[n])
	}
	for n := range size {
		if most > 0 && votes[n] == most {
			return n, true
		}
	}
	return 0, false
}
