package ccl

import (
	"fmt"
	"strings"
)

// checkDevice is an error if v, memory or a stream, is not of the Comm's device, or of another package's devices.
func (l *library) checkDevice(v any, what string) error {
	if p, ok := v.(interface{ Platform() string }); ok && l.backend.Platform != "" {
		if name := p.Platform(); name != l.backend.Platform {
			return fmt.Errorf("%s is from package %s, but the Comm's backend %s works with package %s", what, name,
				l.backend.Name, l.backend.Platform)
		}
	}
	if p, ok := v.(interface{ Device() int }); ok {
		if d := p.Device(); d != l.device {
			return fmt.Errorf("%s is on device %d, the Comm on device %d", what, d, l.device)
		}
	}
	return nil
}

// typeName is the type of v as the program knows it: cuda.Stream is an instance of a type of package gpu.
func typeName(v any) string {
	name, _, _ := strings.Cut(fmt.Sprintf("%T", v), "[")
	if p, ok := v.(interface{ Platform() string }); ok && p.Platform() != "" {
		name = strings.Replace(name, "*gpu.", "*"+p.Platform()+".", 1)
	}
	return name
}
