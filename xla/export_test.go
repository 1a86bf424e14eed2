package xla

// Handle is b's.
func Handle(b *Buffer) (uintptr, bool) { return b.own.res.Handle() }

// Viewed counts what is kept for views.
func Viewed() int {
	viewed.sweep()
	viewed.mu.Lock()
	defer viewed.mu.Unlock()
	return len(viewed.all)
}

// Destroy gives back a buffer that was leaked.
func Destroy(c *Client, h uintptr) { _ = destroy(c.p.api, placeBuffer, h); c.live.Add(-1) }
