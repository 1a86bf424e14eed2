package xla

// Handle is b's.
func Handle(b *Buffer) (uintptr, bool) { return b.own.res.Handle() }

// Destroy gives back a buffer that was leaked.
func Destroy(c *Client, h uintptr) { _ = destroy(c.p.api, placeBuffer, h); c.live.Add(-1) }
