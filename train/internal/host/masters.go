package host

import (
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/raw"
)

// Masters are master copies that a model in the memory of a device has on the host, and updates there.
type Masters[M ccl.Number] struct {
	From  raw.Copier
	All   []M
	grads []M // of the unit that is updated
}

// Make makes memory for so many masters, and for the gradients of the widest unit. It returns its bytes.
func (o *Masters[M]) Make(masters, widest int) (bytes int64) {
	o.All, o.grads = make([]M, masters), make([]M, widest)
	return int64(masters+widest) * int64(ccl.TypeOf[M]().Size())
}

// Get copies what is on the device to dst.
func (o *Masters[M]) Get(dst []M, src ccl.Buf) error {
	if len(dst) == 0 {
		return nil
	}
	b, err := raw.Bytes(ccl.BufOf(dst))
	if err == nil {
		err = o.From.Get(b, src)
	}
	return err
}

// Gradients are those of a unit, on the host, once the device has them.
func (o *Masters[M]) Gradients(g ccl.Buf) (ccl.Buf, error) {
	dst := o.grads[:g.Len()]
	return ccl.BufOf(dst), o.Get(dst, g)
}
