package boot

import "golang.org/x/sys/unix"

// networkFiles are the numbers by which Linux knows file systems that hosts share (statfs(2)).
var networkFiles = map[uint32]bool{
	unix.NFS_SUPER_MAGIC:  true,
	unix.AFS_SUPER_MAGIC:  true,
	unix.CODA_SUPER_MAGIC: true,
	unix.CEPH_SUPER_MAGIC: true,
	unix.SMB2_SUPER_MAGIC: true,
	unix.CIFS_SUPER_MAGIC: true,
	0x0bd00bd0:            true, // Lustre
	0x47504653:            true, // GPFS
	0x19830326:            true, // BeeGFS
	0xaad7aaea:            true, // PanFS
}

// isShared reports whether hosts share dir, as far as its file system tells.
func isShared(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && networkFiles[uint32(st.Type)]
}
