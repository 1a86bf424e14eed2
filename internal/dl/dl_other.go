//go:build !cgo || !unix

package dl

func open(string, bool) (handle uintptr, path string, err error) { return 0, "", errNoCgo }

func symbol(uintptr, string) uintptr { return 0 }
