//go:build !oneccl

package sycl

const tagged = false
