package xla

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Flags are XLA's for one program, by name without the dashes: "xla_gpu_autotune_level". Values are
// bool, int, float64 or string. A plugin refuses a name that it does not know.
type Flags map[string]any

// encode writes a CompileOptionsProto: one replica, one partition, on any device, and the flags.
func (f Flags) encode() ([]byte, error) {
	const (
		build, portable, override = 3, 4, 7 // fields
		replicas, partitions      = 4, 5    // of build
	)
	b := bytesField(nil, build, []byte{replicas << 3, 1, partitions << 3, 1})
	b = append(b, portable<<3, 1)
	for _, name := range slices.Sorted(maps.Keys(f)) {
		var v []byte
		switch x := f[name].(type) {
		case string:
			v = bytesField(nil, 1, []byte(x))
		case bool:
			v = []byte{2 << 3, 0}
			if x {
				v[1] = 1
			}
		case int:
			v = binary.AppendUvarint([]byte{3 << 3}, uint64(x))
		case float64:
			v = binary.LittleEndian.AppendUint64([]byte{4<<3 | 1}, math.Float64bits(x))
		default:
			return nil, fmt.Errorf("xla: flag %s is a %T: give a bool, int, float64 or string", name, x)
		}
		b = bytesField(b, override, bytesField(bytesField(nil, 1, []byte(name)), 2, v))
	}
	return b, nil
}

// bytesField appends a field of protobuf's wire format that has a length.
func bytesField(b []byte, n int, v []byte) []byte {
	return append(binary.AppendUvarint(append(b, byte(n<<3|2)), uint64(len(v))), v...)
}
