package mpi

// The non-blocking forms return once the call is begun. The memory is pinned, and must be left
// alone, until the Request is complete. Start has the kinds that are not here.

func begun(c *Comm, k *Call, err error) (*Request, error) {
	if err != nil {
		return nil, err
	}
	return c.Start(k)
}

// Isend is Send.
func Isend[T Number](c *Comm, buf []T, to, tag int) (*Request, error) {
	k := send(buf, to, tag)
	return c.Start(&k)
}

// Irecv is Recv.
func Irecv[T Number](c *Comm, buf []T, from, tag int) (*Request, error) {
	k := recv(buf, from, tag)
	return c.Start(&k)
}

// Ibarrier is Barrier.
func Ibarrier(c *Comm) (*Request, error) { return c.Start(&Call{Kind: KindBarrier}) }

// Ibcast is Bcast.
func Ibcast[T Number](c *Comm, buf []T, root int) (*Request, error) {
	k := bcast(buf, root)
	return c.Start(&k)
}

// Ireduce is Reduce.
func Ireduce[T Number](c *Comm, dst, src []T, op Op, root int) (*Request, error) {
	k, err := reduce(c, dst, src, op, root)
	return begun(c, &k, err)
}

// Iallreduce is AllReduce.
func Iallreduce[T Number](c *Comm, dst, src []T, op Op) (*Request, error) {
	var k Call
	return begun(c, &k, vector(&k, KindAllReduce, dst, src, op))
}

// Iscan is Scan.
func Iscan[T Number](c *Comm, dst, src []T, op Op) (*Request, error) {
	var k Call
	return begun(c, &k, vector(&k, KindScan, dst, src, op))
}

// Iexscan is Exscan.
func Iexscan[T Number](c *Comm, dst, src []T, op Op) (*Request, error) {
	var k Call
	return begun(c, &k, vector(&k, KindExscan, dst, src, op))
}

// Ireducescatter is ReduceScatter.
func Ireducescatter[T Number](c *Comm, dst, src []T, op Op) (*Request, error) {
	k, err := reduceScatter(c, dst, src, op)
	return begun(c, &k, err)
}

// Igather is Gather.
func Igather[T Number](c *Comm, dst, src []T, root int) (*Request, error) {
	k, err := rooted(c, KindGather, dst, src, nil, root)
	return begun(c, &k, err)
}

// Iscatter is Scatter.
func Iscatter[T Number](c *Comm, dst, src []T, root int) (*Request, error) {
	k, err := rooted(c, KindScatter, dst, src, nil, root)
	return begun(c, &k, err)
}

// Iallgather is AllGather.
func Iallgather[T Number](c *Comm, dst, src []T) (*Request, error) {
	k, err := allGather(c, dst, src)
	return begun(c, &k, err)
}

// Ialltoall is AllToAll.
func Ialltoall[T Number](c *Comm, dst, src []T) (*Request, error) {
	k, err := allToAll(c, dst, src)
	return begun(c, &k, err)
}
