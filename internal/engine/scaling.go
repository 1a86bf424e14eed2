package engine

// Scaling is a Library in which a communicator of many ranks starts faster with several ids, each
// made by another rank. New gets them one behind the other.
type Scaling interface {
	// IDs is how many ids a communicator of that many ranks takes, at least 1, and the bytes of
	// one.
	IDs(ranks int) (n, bytes int)
}
