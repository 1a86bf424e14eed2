//go:build !linux

package launch

// bindTo does nothing where processes cannot be bound to cores.
func bindTo(int, int) error { return nil }
