package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/internal/files"
)

// The metrics of a resumed run go on behind whole lines.
func TestMetricsAfterAKill(t *testing.T) {
	name := filepath.Join(t.TempDir(), "m.json")
	for text, want := range map[string]string{"": "", "{\"step\":1}\n": "{\"step\":1}\n", "{\"step\":1}\n{\"st": "{\"step\":1}\n", "{\"step\":1}": "{\"step\":1}\n", "{\"st": ""} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o666))
		f, err := files.Append(name)
		require.NoError(t, err)
		require.NoError(t, errors.Join(endLine(f), f.Close()))
		got, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	null, err := files.Append(os.DevNull)
	require.NoError(t, err)
	require.NoError(t, errors.Join(endLine(null), null.Close()))
}

// The lines of steps that are made again are gone from a file, and no others.
func TestCutAfter(t *testing.T) {
	name := filepath.Join(t.TempDir(), "m.json")
	line := func(steps ...int) (text string) {
		for _, s := range steps {
			text += "{\"step\":" + string(rune('0'+s)) + ",\"loss\":1}\n"
		}
		return text
	}
	for _, tc := range []struct {
		text, want string
		step, last int
	}{
		{"", "", 3, 0}, {line(1, 2, 3), line(1, 2, 3), 3, 3}, {line(1, 2, 3, 4, 5), line(1, 2, 3), 3, 3}, {line(1, 2), line(1, 2), 3, 2},
		{line(4, 5), "", 3, 0}, {"x\n" + line(4), "x\n", 3, 0}, {line(1, 5, 2, 3, 4), line(1, 5, 2, 3), 3, 3},
	} {
		require.NoError(t, os.WriteFile(name, []byte(tc.text), 0o600))
		last, err := cutAfter(name, tc.step)
		require.NoError(t, err)
		got, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, tc.want, string(got))
		require.Equal(t, tc.last, last)
	}
	last, err := cutAfter(os.DevNull, 3)
	require.NoError(t, err)
	require.Equal(t, 3, last)
	_, err = cutAfter(filepath.Join(name, "x"), 3)
	require.Error(t, err)
}

// Metrics whose last step could not be written are not whole: no Log after it says so.
func TestMetricsOfTheLastStepAreLost(t *testing.T) {
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip("hardware: no " + full)
	}
	table := filepath.Join(t.TempDir(), "table.csv")
	ccltest.Run(t, 1, func(t testing.TB, world *ccl.Comm) {
		c := words(t, small+"1 -json "+full+" -csv "+table)
		require.NoError(t, c.place(1))
		r := &run{out: io.Discard}
		err := r.train(t.Context(), world, c)
		require.ErrorContains(t, err, "step 1 could not be written: write "+full)
	})
	text, err := os.ReadFile(table)
	require.NoError(t, err)
	require.Contains(t, string(text), "\n1,", "what can be written is")
}

// A program whose output is lost, as on a full disk, says so and fails, however many ranks it has.
func TestOutputIsLost(t *testing.T) {
	const full = "/dev/full"
	for _, args := range []string{"-h", small + "1", small + "1 -np 2"} {
		f, err := os.OpenFile(full, os.O_WRONLY, 0)
		if err != nil {
			t.Skip("hardware: no " + full)
		}
		cmd, said := program(t, args)
		cmd.Stdout = f
		exits(t, 1, cmd.Run(), said)
		require.Contains(t, said.String(), "no space left on device", args)
		require.NoError(t, f.Close())
	}
}
