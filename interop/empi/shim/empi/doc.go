// Package empi has the API of github.com/emer/empi/empi v1.0.22: tables and tensors of
// github.com/emer/etable gathered and reduced over ranks, and two helpers. Its functions for them
// need cgo, as etable does.
package empi
