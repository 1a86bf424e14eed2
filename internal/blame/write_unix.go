//go:build unix

package blame

import "syscall"

// write writes to the pipe, if it is the right one. Its other end made it non-blocking.
func write(value, line string) {
	fd, inode, ok := parse(value)
	var st syscall.Stat_t
	if !ok || syscall.Fstat(fd, &st) != nil || uint32(st.Mode)&syscall.S_IFMT != syscall.S_IFIFO ||
		uint64(st.Ino) != inode {
		return
	}
	syscall.Write(fd, []byte(line)) // a full pipe, or nobody there: the launcher does without
}
