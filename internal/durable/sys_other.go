//go:build !linux

package durable

// datasync is the strongest sync that the system has: Sync is F_FULLFSYNC on darwin.
func datasync(f *sysFile) error { return f.f.Sync() }

func readAhead(*sysFile, int64, int64) {}

func dropRange(*sysFile, int64, int64) {}

func writeBack(*sysFile, int64, int64) {}

func memory() int64 { return 0 }

func preallocate(*sysFile, int64) error { return nil }

func reserve(f *sysFile, size int64) error { return writeZeros(f, size) }
