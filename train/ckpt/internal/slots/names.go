package slots

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
)

var objects = regexp.MustCompile(`^(?:index(?:\.(\d{1,9}))?\.json|part-\d{5,}-of-\d{5,}\.(\d{1,9}-\d{1,18}-[0-9a-f]{16})\.safetensors)$`)

// mark is what an attempt is called.
type mark struct {
	slot     int
	sequence int64
	random   string
}

func (m mark) String() string { return fmt.Sprintf("%d-%d-%s", m.slot, m.sequence, m.random) }

// named is what the name of an object says: the mark of a part, or the slot of an index.
func named(object string) (m mark, part, ok bool) {
	f := objects.FindStringSubmatch(path.Base(object))
	if f == nil {
		return m, false, false
	}
	if f[2] == "" {
		m.slot, _ = strconv.Atoi(f[1])
		return m, false, true
	}
	fields := strings.Split(f[2], "-")
	m.slot, _ = strconv.Atoi(fields[0])
	m.sequence, _ = strconv.ParseInt(fields[1], 10, 64)
	m.random = fields[2]
	return m, true, true
}

// Named is the slot that the name of an object says, and whether the object is a part or an index. It
// is neither if ok is false.
func Named(object string) (slot int, part, ok bool) {
	m, part, ok := named(object)
	return m.slot, part, ok
}

// Writer is the rank that has put a part, by the name of the part.
func Writer(object string) string {
	var rank, size int
	if _, err := fmt.Sscanf(path.Base(object), "part-%d-of-%d.", &rank, &size); err != nil {
		return "another rank"
	}
	return fmt.Sprintf("rank %d of the %d that saved", rank-1, size)
}

// PartName is what an attempt calls a part.
func PartName(name, mark string) string {
	return strings.TrimSuffix(name, partEnd) + "." + mark + partEnd
}

// of reports whether an object is a part of the attempt.
func of(mark, object string) bool { return strings.HasSuffix(object, "."+mark+partEnd) }
