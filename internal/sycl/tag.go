//go:build oneccl && !(cgo && linux)

package sycl

const tagged = true
