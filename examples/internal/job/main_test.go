package job

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mainEnv has the test's binary be a program: what it is to do.
const mainEnv = "JOB_TEST_MAIN"

func TestMain(m *testing.M) {
	what, is := os.LookupEnv(mainEnv)
	if !is {
		os.Exit(m.Run())
	}
	out := &Output{W: os.Stdout}
	var wrong error
	np := 0
	switch what {
	case "help":
		wrong = Parse(flag.NewFlagSet("prog", flag.ContinueOnError), []string{"-h"}, out, "It does little.\n", nil, "")
	case "wrong":
		wrong = errors.New("no such flag")
	case "ranks":
		np = 2
	}
	Main("prog", np, false, wrong, out, func(context.Context) error {
		fmt.Fprintln(out, "step=1")
		if what == "fails" {
			return errors.New("no device")
		}
		return nil
	})
	os.Exit(0)
}

// A program whose output is lost, as on a full disk, says so and fails, however many ranks it has.
func TestOutputIsLost(t *testing.T) {
	const full, lost = "/dev/full", "no space left on device"
	if _, err := os.Stat(full); err != nil {
		t.Skip("hardware: no " + full)
	}
	for _, tc := range []struct {
		what, to string
		code     int
		said     string
	}{
		{"help", os.DevNull, 0, ""}, {"help", full, 1, lost},
		{"rank", os.DevNull, 0, ""}, {"rank", full, 1, lost},
		{"ranks", os.DevNull, 0, ""}, {"ranks", full, 1, lost},
		{"wrong", full, 2, "prog: no such flag"}, {"fails", full, 1, "prog: no device"},
	} {
		t.Run(fmt.Sprint(tc.what, tc.to), func(t *testing.T) {
			f, err := os.OpenFile(tc.to, os.O_WRONLY, 0)
			require.NoError(t, err)
			defer f.Close()
			var said bytes.Buffer
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), mainEnv+"="+tc.what)
			cmd.Stdout, cmd.Stderr = f, &said
			err = cmd.Run()
			require.Equal(t, tc.code, cmd.ProcessState.ExitCode(), "%v: %s", err, said.String())
			require.Contains(t, said.String(), tc.said)
			require.Equal(t, tc.said == "", strings.TrimSpace(said.String()) == "", said.String())
		})
	}
}
