package ccl

import (
	"context"
	"log/slog"
)

// defaultLog is slog.Default, of which how, the value of GOCCL_LOG, says what it takes.
func defaultLog(how string) *slog.Logger {
	switch how {
	case "quiet":
		return slog.New(from{slog.Default().Handler(), slog.LevelError})
	case "all":
		return slog.New(from{slog.Default().Handler(), slog.LevelDebug})
	}
	return slog.Default()
}

// from is a handler that takes what has that level or a higher one, whatever the one below it would.
type from struct {
	slog.Handler
	least slog.Level
}

func (f from) Enabled(_ context.Context, l slog.Level) bool { return l >= f.least }

func (f from) WithAttrs(a []slog.Attr) slog.Handler { return from{f.Handler.WithAttrs(a), f.least} }

func (f from) WithGroup(name string) slog.Handler { return from{f.Handler.WithGroup(name), f.least} }
