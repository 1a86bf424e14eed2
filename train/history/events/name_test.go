package events

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Files sort by the time at which they are made, whatever host and process has made them.
func TestFileNamesSort(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	var names []string
	for i, of := range []struct {
		after time.Duration
		host  string
		pid   int
	}{{0, "b", 99}, {1, "a", 100}, {9 * time.Millisecond, "a", 3}, {10 * time.Millisecond, "0", 20}, {999_999_999, "z/y", 7}, {time.Second, "a", 1}, {time.Hour, "a", 1}} {
		names = append(names, fileName(at.Add(of.after), of.host, of.pid))
		require.Regexp(t, `^events\.out\.tfevents\.\d{10}\.\d{9}\.[^/]+\.\d+$`, names[i])
	}
	require.True(t, slices.IsSorted(names), "%q", names)
}
