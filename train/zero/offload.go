package zero

import (
	"fmt"
	"unsafe"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ckpt"
)

// offloaded are master copies that a Model in the memory of a device has on the host, and updates there.
type offloaded[M Float] struct {
	from    ckpt.Copier
	masters []M
	grads   []M // of the unit that is updated
}

// noOffload says why a Memory's masters cannot be on the host.
func noOffload(mem Memory) error {
	if _, ok := mem.(ckpt.Copier); !ok && mem != nil {
		return fmt.Errorf("masters cannot be offloaded from memory that a %T cannot copy to the host", mem)
	}
	return nil
}

func (o *offloaded[M]) allocate(masters, widest int) (bytes int64) {
	o.masters, o.grads = make([]M, masters), make([]M, widest)
	return int64(masters+widest) * int64(ccl.TypeOf[M]().Size())
}

// get copies what is on the device to dst.
func (o *offloaded[M]) get(dst []M, src ccl.Buf) error {
	if len(dst) == 0 {
		return nil
	}
	return o.from.Get(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(dst))), len(dst)*ccl.TypeOf[M]().Size()), src)
}

// gradients are those of a unit, on the host, once the device has them.
func (o *offloaded[M]) gradients(g ccl.Buf) (ccl.Buf, error) {
	dst := o.grads[:g.Len()]
	return ccl.BufOf(dst), o.get(dst, g)
}
