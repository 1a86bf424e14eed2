// Package blame tells the launcher on this host which rank the ranks hold to be the cause of a
// failure, and which of them were spares that nobody needed.
//
// The rank that ends first is seldom the one at fault: what calls Abort, or panics, may take its
// time to end, while the others have their errors and go. So boot.Spawn gives its ranks a pipe, and
// a rank whose Comm fails writes down there whom its error names. Spawn reads it when all have
// ended. A spare that hears that the job has ended without it says that there, too: it has ended
// well, but has done none of the work.
package blame

import (
	"fmt"
	"os"
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

// Unused tells the launcher that this process was a spare that the job has not needed.
func Unused() {
	text := environ.BlameFD.Get()
	place := environ.Rank.Text(os.Getenv)
	if id := environ.Newcomer.Get(); id != "" { // the place in which it was started, and which time
		place, _, _ = strings.Cut(id, ".")
	}
	if rank, err := strconv.Atoi(place); text != "" && err == nil {
		write(text, unused+strconv.Itoa(rank)+"\n")
	}
}

// unused is how the line of a spare begins that nobody needed. Its place among the launcher's processes follows.
const unused = "unused "

// AreUnused says which of size processes have been spares that nobody needed, by the lines of text.
func AreUnused(text []byte, size int) []bool {
	are := make([]bool, size)
	for line := range strings.Lines(string(text)) {
		place, ok := strings.CutPrefix(line, unused)
		n, err := strconv.Atoi(strings.TrimSuffix(place, "\n"))
		if ok && err == nil && n >= 0 && n < size && strings.HasSuffix(line, "\n") {
			are[n] = true
		}
	}
	return are
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
