package boot

// WithDisk has fault decide what goes wrong on the disk of a FileStore: it is asked before each step.
func WithDisk(s Store, fault func(op, path string) error) Store {
	s.(*fileStore).disk.fault = fault
	return s
}
