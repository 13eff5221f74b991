//go:build !linux

package durable

import "os"

// datasync is the strongest sync that the system has: Sync is F_FULLFSYNC on darwin.
func datasync(f *os.File) error { return f.Sync() }

func dropCache(*os.File) {}

func preallocate(*os.File, int64) error { return nil }
