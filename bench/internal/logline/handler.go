// Package logline writes what the library logs as single lines that say which rank, on
// which host, said it. Rank 0 tells; the others only warn, unless GOCCL_LOG says from which level on.
package logline

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Handler is the slog.Handler of one process.
type Handler struct {
	// Muted, if not nil, reports whether what is logged concerns nobody any more: of a
	// run that the user has interrupted.
	Muted func() bool

	w     io.Writer
	mu    *sync.Mutex
	from  string // rank 3 on h2
	least slog.Level
	asked bool          // for all from least on
	until *atomic.Int64 // see Until; in nanoseconds since 1970, 0 for ever
	attrs string        // of With, written already
	group string
}

// New makes the handler of a rank, which tells what has the level least, the value of GOCCL_LOG, or a higher one.
func New(w io.Writer, rank int, host string, least *slog.Level) *Handler {
	h := &Handler{w: w, mu: new(sync.Mutex), from: fmt.Sprintf("rank %d on %s", rank, host), least: slog.LevelWarn,
		asked: least != nil, until: new(atomic.Int64)}
	switch {
	case least != nil:
		h.least = *least
	case rank == 0:
		h.least = slog.LevelInfo
	}
	return h
}

// Enabled reports whether lines of that level are written.
func (h *Handler) Enabled(_ context.Context, l slog.Level) bool {
	until := h.until.Load()
	return l >= h.least && (h.Muted == nil || !h.Muted()) && (h.asked || until == 0 || time.Now().UnixNano() < until)
}

// Until leaves out what is logged from t on, since somebody says by then what there is to say,
// unless GOCCL_LOG asks for it.
func (h *Handler) Until(t time.Time) { h.until.Store(t.UnixNano()) }

// Handle writes one line.
func (h *Handler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	fmt.Fprintf(&b, "bench: %s: %s: %s%s", h.from, strings.ToLower(r.Level.String()), line(r.Message), h.attrs)
	r.Attrs(func(a slog.Attr) bool {
		h.write(&b, a)
		return true
	})
	b.WriteByte('\n')
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := io.WriteString(h.w, b.String())
	return err
}

func (h *Handler) write(b *strings.Builder, a slog.Attr) {
	if a.Equal(slog.Attr{}) {
		return
	}
	fmt.Fprintf(b, " %s%s=%s", h.group, a.Key, value(a.Value.Resolve().String()))
}

// WithAttrs is a handler that adds attrs to each line.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	var b strings.Builder
	for _, a := range attrs {
		h.write(&b, a)
	}
	with := *h
	with.attrs += b.String()
	return &with
}

// WithGroup is a handler that puts name before the attributes to come.
func (h *Handler) WithGroup(name string) slog.Handler {
	with := *h
	if name != "" {
		with.group += name + "."
	}
	return &with
}

// line keeps a message one line.
func line(s string) string { return strings.NewReplacer("\n", "; ", "\r", "").Replace(s) }

// value quotes what would not read as one word.
func value(s string) string {
	if s == "" || strings.ContainsAny(s, " \t\r\n\"=") {
		return fmt.Sprintf("%q", s)
	}
	return s
}
