//go:build cgo && linux

package fake

import _ "github.com/goccl/goccl/test/fake/environ" // the library's threads ask for variables while a test sets others
