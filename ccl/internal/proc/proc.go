// Package proc tells what the kernel knows of processes: that one has died, that this one is a
// forked child, how to sleep for microseconds, and how to wait for a word that another process
// stores.
//
// Linux does all of it. Elsewhere each function says that it cannot, and the engine has a slower way.
package proc

// OwnerDied is the bit that the kernel sets in the word of MarkDeath: FUTEX_OWNER_DIED of linux/futex.h.
const OwnerDied = 1 << 30

// Watcher hears of the end of another process.
type Watcher interface {
	// Ended is called on a thread of package proc, without a lock. It must not block.
	Ended()
}
