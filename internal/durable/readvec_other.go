//go:build !linux || generic

package durable

func (f *sysFile) readVec(parts [][]byte, off int64) error { return f.readEach(parts, off) }
