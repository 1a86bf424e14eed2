package value

import (
	"encoding/binary"
	"reflect"
	"time"
	"unsafe"
)

var timeType = reflect.TypeFor[time.Time]()

// time makes c one of times: the moment and its location. The monotonic reading means nothing to
// another process, so it is left out. MarshalBinary leaves out the location's name, too.
func (c *coder) time() {
	c.least = 5
	c.enc = func(e *encoder, p unsafe.Pointer) *refusal {
		w := e.zone.momentOf(*(*time.Time)(p))
		e.out = append(e.out, w.kind)
		for _, n := range [...]int64{w.sec, w.nsec, w.offset} {
			e.out = binary.AppendVarint(e.out, n)
		}
		return e.bytes(w.name)
	}
	c.dec = func(d *decoder, p unsafe.Pointer) *refusal {
		kind, ok := d.take(1)
		if !ok || kind[0] > unnamed {
			return cutShort
		}
		w := moment{kind: kind[0]}
		for _, to := range [...]*int64{&w.sec, &w.nsec, &w.offset} {
			n, size := binary.Varint(d.in)
			if size <= 0 {
				return cutShort
			}
			*to, d.in = n, d.in[size:]
		}
		name, ok := d.bytes()
		if !ok {
			return cutShort
		}
		w.name = string(name)
		*(*time.Time)(p) = d.zone.time(w)
		return nil
	}
}

// moment is a time without its monotonic reading.
type moment struct {
	kind              byte
	sec, nsec, offset int64
	name              string
}

// What a time's location is.
const (
	utc      = iota
	local    // or, where that has another offset, unnamed
	fixed    // of an offset, by a name
	database // of time zones, if this process has it: else unnamed
	unnamed  // of an offset
)

// zone is the last one that was looked for in the database, whose files are read each time. Many
// times most often have one zone.
type zone struct {
	name string
	of   *time.Location // nil if there is none
}

func (z *zone) find(name string) *time.Location {
	if name != z.name {
		z.name = name
		z.of, _ = time.LoadLocation(name)
	}
	return z.of
}

// momentOf is the moment that is t again, or else the same instant at the same offset.
func (z *zone) momentOf(t time.Time) moment {
	t = t.Round(0)
	name, offset := t.Zone()
	m := moment{kind: utc, sec: t.Unix(), nsec: int64(t.Nanosecond()), offset: int64(offset)}
	if z.time(m) == t {
		return m
	}
	if m.kind = local; z.time(m) == t {
		return m
	}
	if m.kind, m.name = fixed, name; reflect.DeepEqual(z.time(m), t) {
		return m
	}
	m.kind, m.name = database, t.Location().String()
	if l := z.find(m.name); l != nil { // not DeepEqual: a Location also knows which rule held when it was loaded
		if n, o := t.In(l).Zone(); n == name && o == offset {
			return m
		}
	}
	m.kind, m.name = unnamed, ""
	return m
}

func (z *zone) time(m moment) time.Time {
	t := time.Unix(m.sec, m.nsec).UTC()
	switch m.kind {
	case utc:
		return t
	case local:
		if _, offset := t.Local().Zone(); offset == int(m.offset) {
			return t.Local()
		}
	case fixed:
		return t.In(time.FixedZone(m.name, int(m.offset)))
	case database:
		if l := z.find(m.name); l != nil {
			return t.In(l)
		}
	}
	return t.In(time.FixedZone("", int(m.offset)))
}
