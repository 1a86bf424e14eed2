package ccl

import (
	"context"
	"reflect"
)

// Bootstrap tells a process its rank and the number of ranks, and gives it one way to exchange
// bytes with the others. NewComm needs it only until it returns. boot.TCP, boot.File, boot.Local
// and boot.Env return one, and any type with these three methods is one. NewComm also uses these
// methods if they exist:
//
//	Secret() []byte         // known only to the ranks of the job; nil takes that of the environment
//	Addr() netip.Addr       // of the interface that reaches the other hosts
//	HostID() string         // ranks with different values count as on different hosts
//	Limit() time.Duration   // of an AllGather whose context has no deadline
//	Watch() <-chan struct{} // closed if a rank is lost before the next AllGather
//	Refuse(why error)       // tells the other ranks why this one cannot take part
type Bootstrap interface {
	Rank() int
	Size() int
	// AllGather returns every rank's mine, indexed by rank.
	AllGather(ctx context.Context, mine []byte) ([][]byte, error)
}

// absent reports whether b is nil, or a nil pointer, as that of a function which has returned an error.
func absent(b Bootstrap) bool {
	if b == nil {
		return true
	}
	v := reflect.ValueOf(b)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
