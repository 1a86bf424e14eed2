//go:build linux

package promises

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/test/program"
)

// part is what a rank process does in a test; the environment names it.
type part func(ctx context.Context, c *ccl.Comm)

var parts = map[string]part{}

const partVar = "GOCCL_PROMISES_PART"

// isRank says that this process is one that a test has started.
func isRank() bool { return os.Getenv(partVar) != "" || os.Getenv("GOCCL_CCLTEST_CALL") != "" }

// argument is the one that processes passed on.
func argument() string { return os.Getenv(partVar + "_ARG") }

// victim is the rank that comes to harm.
const victim = 1

// peerTimeout is that of all tests: short, so that they are.
const peerTimeout = time.Second

// TestRankProcess is not a test of its own: it is what the processes run.
func TestRankProcess(t *testing.T) {
	name := os.Getenv(partVar)
	if name == "" || name == newCommPart || name == replacedPart || name == idlePart || name == growthPart {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := ccl.Join(ctx, &ccl.Options{PeerTimeout: peerTimeout, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, ccl.Barrier(ctx, c))
	parts[name](ctx, c)
}

// say prints a line that the test will parse: what, who, when, and the error if any.
func say(what string, c *ccl.Comm, err error) { sayAt(what, c.Rank(), err) }

func sayAt(what string, rank int, err error) {
	now := time.Now().UnixNano()
	var e *ccl.Error
	code, peer := ccl.Code(0), -1
	if errors.As(err, &e) {
		code, peer = e.Code, e.Peer
	}
	fmt.Printf("said %s rank %d at %d code %d peer %d: %v\n", what, rank, now, code, peer, err)
}

// line is what a rank has said.
type line struct {
	what       string
	rank, peer int
	at         time.Time
	code       ccl.Code
	text       string
}

var saidLine = regexp.MustCompile(`said (\S+) rank (\d+) at (\d+) code (\d+) peer (-?\d+): (.*)`)

// processes runs a part on n processes and returns what they have said.
func processes(t *testing.T, n, hosts int, name, arg string) (lines []line, text string) {
	t.Helper()
	return processesOf(t, "TestRankProcess", n, hosts, name, arg)
}

func processesOf(t *testing.T, test string, n, hosts int, name, arg string) (lines []line, text string) {
	t.Helper()
	// That a rank is lost is no failure here.
	text, _ = program.Itself(t, 2*time.Minute, boot.Command{N: n, Hosts: hosts, KeepGoing: true}, test, partVar+"="+name, partVar+"_ARG="+arg)
	require.NotRegexp(t, `SIGSEGV|SIGBUS|fatal error|--- FAIL`, text)
	for l := range strings.Lines(text) {
		if m := saidLine.FindStringSubmatch(l); m != nil {
			number := func(s string) int { n, _ := strconv.Atoi(s); return n }
			lines = append(lines, line{m[1], number(m[2]), number(m[5]), time.Unix(0, int64(number(m[3]))), ccl.Code(number(m[4])), m[6]})
		}
	}
	return lines, text
}

// first is the line of that kind of that rank.
func first(t *testing.T, lines []line, what string, rank int, text string) line {
	t.Helper()
	for _, l := range lines {
		if l.what == what && l.rank == rank {
			return l
		}
	}
	require.Fail(t, "a line is missing", "no %q of rank %d in:\n%s", what, rank, text)
	return line{}
}

// callOn makes calls until one fails.
func callOn(ctx context.Context, c *ccl.Comm) error {
	x := make([]float32, 10_000)
	for {
		if err := ccl.AllReduce(ctx, c, x, x, ccl.Max); err != nil {
			return err
		}
	}
}
