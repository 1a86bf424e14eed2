package ccl

import (
	"context"
	"log/slog"
)

// defaultLog is slog.Default, or takes what has the level least, the value of GOCCL_LOG, or a higher one.
func defaultLog(least *slog.Level) *slog.Logger {
	if least == nil {
		return slog.Default()
	}
	return slog.New(from{slog.Default().Handler(), *least})
}

// from is a handler that takes records from level least up, whatever level the wrapped handler asks for.
type from struct {
	slog.Handler
	least slog.Level
}

func (f from) Enabled(_ context.Context, l slog.Level) bool { return l >= f.least }

func (f from) WithAttrs(a []slog.Attr) slog.Handler { return from{f.Handler.WithAttrs(a), f.least} }

func (f from) WithGroup(name string) slog.Handler { return from{f.Handler.WithGroup(name), f.least} }
