//go:build race || !amd64

package op

// Another processor may not keep the order of stores, and the race detector is to see what is meant.
const keepsStores = false
