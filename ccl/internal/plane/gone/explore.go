package gone

import (
	"encoding/binary"
	"maps"
	"slices"
)

// Clone returns a State that goes on by itself, for a checker that explores what may happen.
func (s *State) Clone() *State {
	t := *s
	t.gone, t.hosts = maps.Clone(s.gone), maps.Clone(s.hosts)
	t.Events = s.Events.Clone()
	return &t
}

// Append appends what tells s's state from others of the same job.
func (s *State) Append(b []byte) []byte {
	for _, w := range slices.Sorted(maps.Keys(s.gone)) {
		r, flags := s.gone[w], byte(0)
		for i, f := range []bool{r.Left, r.Reported, r.Lost, r.Certain, r.Doubted} {
			if f {
				flags |= 1 << i
			}
		}
		b = append(binary.LittleEndian.AppendUint32(b, uint32(w)), flags)
	}
	for _, h := range slices.Sorted(maps.Keys(s.hosts)) {
		p := s.hosts[h]
		b = append(binary.LittleEndian.AppendUint32(b, uint32(h)), byte(p.first), byte(p.empty))
	}
	return s.Events.Append(append(b, '.'))
}
