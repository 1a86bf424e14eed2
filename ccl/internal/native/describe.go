//go:build (nccl || rccl) && cgo && linux

package native

import "github.com/goccl/goccl/internal/engine"

// describe is l as package ccl knows it, nil beside an error.
func describe(l *library, err error) (*engine.Library, error) {
	if err != nil {
		return nil, err
	}
	return &engine.Library{Version: l.Version(), Interruptible: true, Connects: true, Gathers: l.version >= gathers,
		Windows: l.windows(),
		ID:      l.ID, IDBytes: idBytes, IDs: l.IDs, New: l.New, Hints: l.Hints}, nil
}
