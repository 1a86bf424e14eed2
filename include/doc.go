// Package include holds the C headers with which goccl calls libraries that it opens at run time:
// tables of names and parameters, declared here so that no vendor's header is needed to build.
// It has no Go code; it is a package so that `go mod vendor` keeps the headers.
package include
