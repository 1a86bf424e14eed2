//go:build unix

package subprocess

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// late takes nothing before it is told to.
type late struct {
	got bytes.Buffer // not embedded: io.Copy would take its ReadFrom
	now chan struct{}
}

func (l *late) Write(p []byte) (int, error) {
	<-l.now
	return l.got.Write(p)
}

// run runs a script whose output w gets, and calls ended when it has ended.
func run(t *testing.T, script string, w io.Writer, grace time.Duration, ended func()) {
	t.Helper()
	o, child, err := NewOutput(w)
	require.NoError(t, err)
	cmd := exec.Command("sh", "-c", script)
	cmd.Stdout = child
	err = cmd.Start()
	o.Started()
	require.NoError(t, err)
	cmd.Wait()
	ended()
	o.Wait(grace)
}

func TestOutput(t *testing.T) {
	for name, script := range map[string]string{
		"all at once":               "printf %70000d 1 | head -c 60000",
		"and a process that has it": "printf %70000d 1 | head -c 60000; sleep 5 &",
	} {
		t.Run(name, func(t *testing.T) {
			l := &late{now: make(chan struct{})}
			run(t, "echo begun; "+script, l, 0, func() { time.AfterFunc(50*time.Millisecond, func() { close(l.now) }) })
			require.Equal(t, "begun\n"+strings.Repeat(" ", 60000), l.got.String())
		})
	}
}

// What others write that have the output arrives within the grace, and those that write without an
// end are left.
func TestOutputOfOthers(t *testing.T) {
	var got bytes.Buffer
	run(t, "(sleep .1; echo after) &", &got, time.Hour, func() {})
	require.Equal(t, "after\n", got.String())
	got.Reset()
	run(t, "echo before; yes &", &got, 0, func() {})
	require.True(t, strings.HasPrefix(got.String(), "before\n"))
}

// A process whose output nobody takes hears of it.
func TestOutputRefused(t *testing.T) {
	r, w := io.Pipe()
	r.CloseWithError(errors.New("full"))
	run(t, "yes", w, time.Hour, func() {})
}
