//go:build !race

package op

// x86 keeps the order of stores.
const keepsStores = true
