//go:build !linux

package durable

// datasync is the strongest sync that the system has: Sync is F_FULLFSYNC on darwin.
func datasync(f *sysFile) error { return f.f.Sync() }

func dropCache(*sysFile) {}

func preallocate(*sysFile, int64) error { return nil }

func reserve(f *sysFile, size int64) error { return writeZeros(f, size) }
