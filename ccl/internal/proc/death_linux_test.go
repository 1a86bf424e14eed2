package proc

import (
	"math"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// bearerVar makes a child of this test mark its word in the memory of descriptor 3. Its value says how the child ends.
const bearerVar = "GOCCL_TEST_BEARER"

func TestMain(m *testing.M) {
	if how := os.Getenv(bearerVar); how != "" {
		os.Exit(bear(how))
	}
	os.Exit(m.Run())
}

// bear is the child: it marks its word, or two of them, says so on stdout, and ends as told.
func bear(how string) int {
	words, err := mapWords(3)
	if err != nil || !MarkDeath(&words[1]) {
		return 3
	}
	if (how == "two" || how == "the second") && !MarkDeath(&words[2]) {
		return 4
	}
	if how == "the second" {
		UnmarkDeath(&words[1])
	}
	os.Stdout.Write([]byte{'.'})
	if how == "unmark" {
		var b [1]byte
		os.Stdin.Read(b[:])
		UnmarkDeath(&words[1])
	}
	time.Sleep(math.MaxInt64) // killed; without a timer the runtime would end a process that nobody can wake
	return 5
}

func mapWords(fd int) ([]atomic.Uint32, error) {
	mem, err := unix.Mmap(fd, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*atomic.Uint32)(unsafe.Pointer(&mem[0])), 4), nil
}

// newWords are words in memory that a child can map from the file, of which this process has marked the first.
func newWords(t *testing.T) (*os.File, []atomic.Uint32) {
	fd, err := unix.MemfdCreate("words", unix.MFD_CLOEXEC)
	require.NoError(t, err)
	file := os.NewFile(uintptr(fd), "words")
	t.Cleanup(func() { file.Close() })
	require.NoError(t, file.Truncate(int64(os.Getpagesize())))
	words, err := mapWords(fd)
	require.NoError(t, err)
	if !MarkDeath(&words[0]) {
		t.Skip("hardware: this kernel keeps no robust list for us")
	}
	t.Cleanup(func() { UnmarkDeath(&words[0]) })
	return file, words
}

// heard counts what a Watcher hears.
type heard chan struct{}

func (h heard) Ended() { h <- struct{}{} }

// The kernel marks the word of a process that is killed, and whoever watches it hears of that, as of a process that takes
// its mark away.
func TestDeathOfAnotherProcess(t *testing.T) {
	file, words := newWords(t)
	require.NotZero(t, words[0].Load())
	tell := make(heard, 10)
	require.False(t, WatchDeath(&words[1], &words[0], tell), "not this process's word")

	for _, how := range []string{"kill", "unmark"} {
		t.Run(how, func(t *testing.T) {
			words[1].Store(0)
			child := exec.Command(os.Args[0])
			child.Env = append(os.Environ(), bearerVar+"="+how)
			child.ExtraFiles = []*os.File{file}
			out, err := child.StdoutPipe()
			require.NoError(t, err)
			in, err := child.StdinPipe()
			require.NoError(t, err)
			require.NoError(t, child.Start())
			var b [1]byte
			_, err = out.Read(b[:])
			require.NoError(t, err, "the child could not mark its word")
			require.NotZero(t, words[1].Load())
			require.Zero(t, words[1].Load()&OwnerDied)
			require.True(t, WatchDeath(&words[0], &words[1], tell))
			require.True(t, WatchDeath(&words[0], &words[1], tell), "twice is once")
			if how == "kill" {
				require.NoError(t, child.Process.Kill())
			} else {
				in.Close()
			}
			select {
			case <-tell:
			case <-time.After(10 * time.Second): // it looks again only after watchAgain
				t.Fatal("nothing was heard of the child's end")
			}
			if how == "kill" {
				require.NotZero(t, words[1].Load()&OwnerDied)
			} else {
				require.Zero(t, words[1].Load())
				require.NoError(t, child.Process.Kill())
			}
			err = child.Wait()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
			require.Equal(t, syscall.SIGKILL, exit.Sys().(syscall.WaitStatus).Signal())
			require.Empty(t, tell, "one end is told once")
		})
	}
}

// The mark is free again once it has been taken away.
func TestMarkAgain(t *testing.T) {
	var a, b atomic.Uint32
	if !MarkDeath(&a) {
		t.Skip("hardware: this kernel keeps no robust list for us")
	}
	UnmarkDeath(&b) // not marked
	require.NotZero(t, a.Load())
	UnmarkDeath(&a)
	require.Zero(t, a.Load())
	require.True(t, MarkDeath(&b))
	UnmarkDeath(&b)
	require.Zero(t, b.Load())
}

// A process that is in two jobs has a mark in each, whichever it has left by then, and is watched in each.
func TestDeathInEveryJob(t *testing.T) {
	file, words := newWords(t)
	require.True(t, MarkDeath(&words[3]), "this process is in two jobs, too")
	defer UnmarkDeath(&words[3])
	require.NotEqual(t, words[0].Load(), words[3].Load(), "a thread of its own for each job")

	for _, tc := range []struct {
		how    string
		marked []int // words of the child's
	}{{"two", []int{1, 2}}, {"the second", []int{2}}} {
		t.Run(tc.how, func(t *testing.T) {
			words[1].Store(0)
			words[2].Store(0)
			child := exec.Command(os.Args[0])
			child.Env = append(os.Environ(), bearerVar+"="+tc.how)
			child.ExtraFiles = []*os.File{file}
			out, err := child.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, child.Start())
			var b [1]byte
			_, err = out.Read(b[:])
			require.NoError(t, err, "the child could not mark its words")
			tells := []heard{make(heard, 10), make(heard, 10)}
			own := []int{0, 3}
			for i, w := range tc.marked {
				require.NotZero(t, words[w].Load())
				require.True(t, WatchDeath(&words[own[i]], &words[w], tells[i]))
			}
			require.NoError(t, child.Process.Kill())
			for i, w := range tc.marked {
				select {
				case <-tells[i]:
				case <-time.After(9 * time.Second): // it looks again only after watchAgain
					t.Fatalf("nothing was heard of the child's end by word %d", w)
				}
				require.NotZero(t, words[w].Load()&OwnerDied)
			}
			require.Error(t, child.Wait())
			if len(tc.marked) == 1 {
				require.Zero(t, words[1].Load(), "the job that the child had left")
			}
		})
	}
}
