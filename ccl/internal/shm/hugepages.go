package shm

// HugeAfter is after how many uses memory is gathered in huge pages.
type HugeAfter uint64

const (
	// HugeRead: other processes read it, for whom the kernel looks up each page. Memory that is read
	// twice is read again, and a third time pays for it.
	HugeRead HugeAfter = 2
	// HugeFilled: what others have is written there, which takes a tenth less in huge pages. Some thirty times pay for it.
	HugeFilled HugeAfter = 8
)
