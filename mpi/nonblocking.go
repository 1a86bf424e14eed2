package mpi

// The non-blocking forms return once the call is begun. The memory is pinned, and must be left
// alone, until the Request is complete. Start has the kinds that are not here.

// begun starts k, unless it was refused.
func (c *Comm) begun(k Call, err error) (*Request, error) {
	if err != nil {
		return nil, err
	}
	return c.Start(&k)
}

// Isend is Send.
func Isend[T Number](c *Comm, buf []T, to, tag int) (*Request, error) {
	return c.begun(send(buf, to, tag), nil)
}

// Irecv is Recv.
func Irecv[T Number](c *Comm, buf []T, from, tag int) (*Request, error) {
	return c.begun(recv(buf, from, tag), nil)
}

// Ibarrier is Barrier.
func Ibarrier(c *Comm) (*Request, error) { return c.Start(&Call{Kind: KindBarrier}) }

// Ibcast is Bcast.
func Ibcast[T Number](c *Comm, buf []T, root int) (*Request, error) {
	return c.begun(bcast(buf, root), nil)
}

// Ireduce is Reduce.
func Ireduce[T Number](c *Comm, dst, src []T, op Op, root int) (*Request, error) {
	return c.begun(reduce(c, dst, src, op, root))
}

// Iallreduce is AllReduce.
func Iallreduce[T Number](c *Comm, dst, src []T, op Op) (*Request, error) {
	return c.begun(vectorCall(KindAllReduce, dst, src, op))
}

// Iscan is Scan.
func Iscan[T Number](c *Comm, dst, src []T, op Op) (*Request, error) {
	return c.begun(vectorCall(KindScan, dst, src, op))
}

// Iexscan is Exscan.
func Iexscan[T Number](c *Comm, dst, src []T, op Op) (*Request, error) {
	return c.begun(vectorCall(KindExscan, dst, src, op))
}

// Ireducescatter is ReduceScatter.
func Ireducescatter[T Number](c *Comm, dst, src []T, op Op) (*Request, error) {
	return c.begun(reduceScatter(c, dst, src, op))
}

// Igather is Gather.
func Igather[T Number](c *Comm, dst, src []T, root int) (*Request, error) {
	return c.begun(rooted(c, KindGather, dst, src, nil, root))
}

// Iscatter is Scatter.
func Iscatter[T Number](c *Comm, dst, src []T, root int) (*Request, error) {
	return c.begun(rooted(c, KindScatter, dst, src, nil, root))
}

// Iallgather is AllGather.
func Iallgather[T Number](c *Comm, dst, src []T) (*Request, error) {
	return c.begun(allGather(c, dst, src))
}

// Ialltoall is AllToAll.
func Ialltoall[T Number](c *Comm, dst, src []T) (*Request, error) {
	return c.begun(allToAll(c, dst, src))
}

// vectorCall is vector, with the Call as its result.
func vectorCall[T Number](kind Kind, dst, src []T, op Op) (k Call, err error) {
	err = vector(&k, kind, dst, src, op)
	return k, err
}
