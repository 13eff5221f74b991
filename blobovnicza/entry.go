package blobovnicza

// entry is the newest record of an address in one file: offset/8, the tombstone bit and the payload's length.
// The zero entry is none, since every file begins with a manifest.
type entry uint64

func makeEntry(k kind, off int64, length uint32) entry {
	e := entry(off/align)<<32 | entry(length)
	if k == kindTombstone {
		e |= tombstoneBit
	}
	return e
}

func (e entry) off() int64      { return int64(e>>32) * align }
func (e entry) length() uint32  { return uint32(e) &^ tombstoneBit }
func (e entry) tombstone() bool { return e&tombstoneBit != 0 }

// in returns the place of e in a file.
func (e entry) in(file uint32) place { return place{file, e.off(), e.length(), e.tombstone()} }
