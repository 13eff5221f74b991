//go:build !linux

package blobovnicza

import "os"

func fdatasync(f *os.File) error { return f.Sync() }
