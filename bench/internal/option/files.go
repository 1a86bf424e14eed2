package option

import (
	"fmt"

	"github.com/goccl/goccl/internal/files"
)

// apart refuses two reports in one file, by whatever names: the second would overwrite the first.
func (o Options) apart() error {
	type file struct{ flag, path string }
	var seen []file
	for _, f := range []file{{"J", o.JSON}, {"csv", o.CSV}, {"html", o.HTML}} {
		if f.path == "" {
			continue
		}
		for _, first := range seen {
			if files.Same(first.path, f.path) {
				return fmt.Errorf("-%s %s: -%s writes that file; give another name", f.flag, f.path, first.flag)
			}
		}
		seen = append(seen, f)
	}
	return nil
}
