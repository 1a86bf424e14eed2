package logline

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func at(l slog.Level) *slog.Level { return &l }

func TestHandler(t *testing.T) {
	for _, tc := range []struct {
		name  string
		rank  int
		level *slog.Level
		want  string
	}{
		{"rank 0 tells", 0, nil, "bench: rank 0 on h1: info: b\nbench: rank 0 on h1: warn: c\nbench: rank 0 on h1: error: d\n"},
		{"others warn", 3, nil, "bench: rank 3 on h1: warn: c\nbench: rank 3 on h1: error: d\n"},
		{"all", 3, at(slog.LevelDebug), "bench: rank 3 on h1: debug: a\nbench: rank 3 on h1: info: b\nbench: rank 3 on h1: warn: c\nbench: rank 3 on h1: error: d\n"},
		{"a level for all", 3, at(slog.LevelInfo), "bench: rank 3 on h1: info: b\nbench: rank 3 on h1: warn: c\nbench: rank 3 on h1: error: d\n"},
		{"quiet", 0, at(slog.LevelError), "bench: rank 0 on h1: error: d\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out strings.Builder
			l := slog.New(New(&out, tc.rank, "h1", tc.level))
			l.Debug("a")
			l.Info("b")
			l.Warn("c")
			l.Error("d")
			require.Equal(t, tc.want, out.String())
		})
	}
}

func TestAttributes(t *testing.T) {
	var out strings.Builder
	l := slog.New(New(&out, 1, "h2", at(slog.LevelDebug))).With("job", "7").WithGroup("peer").With("rank", 2)
	l.Warn("two\nlines", "why", "it is so", "took", 3)
	require.Equal(t, "bench: rank 1 on h2: warn: two; lines job=7 peer.rank=2 peer.why=\"it is so\" peer.took=3\n", out.String())
}

func TestMuted(t *testing.T) {
	var out strings.Builder
	h, muted := New(&out, 0, "h1", nil), false
	h.Muted = func() bool { return muted }
	l := slog.New(h).With("a", 1)
	l.Warn("one")
	muted = true
	l.Warn("two")
	require.Equal(t, "bench: rank 0 on h1: warn: one a=1\n", out.String())
}

func TestUntil(t *testing.T) {
	for _, asked := range []*slog.Level{nil, at(slog.LevelWarn)} {
		var out strings.Builder
		h := New(&out, 0, "h1", asked)
		l := slog.New(h).With("a", 1)
		h.Until(time.Now().Add(time.Hour))
		l.Warn("one")
		h.Until(time.Now())
		l.Warn("two")
		want := "bench: rank 0 on h1: warn: one a=1\n"
		if asked != nil {
			want += "bench: rank 0 on h1: warn: two a=1\n"
		}
		require.Equal(t, want, out.String())
	}
}
