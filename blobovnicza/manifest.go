package blobovnicza

import (
	"encoding/binary"
	"math"
)

// Part of the format, never change.
const (
	manifestHead  = 8
	manifestEntry = 40
)

// unknownEnd is the end of a file that was lost before any manifest listed it.
const unknownEnd = math.MaxInt64

// listed is what a manifest says of an older file: bytes beyond end do not exist.
type listed struct {
	number     uint32
	records    uint32
	objects    uint32
	tombstones uint32
	end        int64
	live, dead int64
}

// appendManifest appends the payload of a manifest: every older file, in order of number.
func appendManifest(b []byte, files []listed) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(files)))
	b = append(b, 0, 0, 0, 0)
	for _, f := range files {
		b = binary.BigEndian.AppendUint32(b, f.number)
		b = binary.BigEndian.AppendUint32(b, f.records)
		b = binary.BigEndian.AppendUint32(b, f.objects)
		b = binary.BigEndian.AppendUint32(b, f.tombstones)
		b = binary.BigEndian.AppendUint64(b, uint64(f.end))
		b = binary.BigEndian.AppendUint64(b, uint64(f.live))
		b = binary.BigEndian.AppendUint64(b, uint64(f.dead))
	}
	return b
}

// parseManifest reads the payload of a manifest in file number; ok is false if it cannot be one. It lists older
// files, and the file itself if it seals it.
func parseManifest(b []byte, number uint32) (files []listed, ok bool) {
	if len(b) < manifestHead || binary.BigEndian.Uint32(b[4:]) != 0 {
		return nil, false
	}
	count := int64(binary.BigEndian.Uint32(b))
	b = b[manifestHead:]
	if int64(len(b)) != count*manifestEntry {
		return nil, false
	}
	for ; len(b) > 0; b = b[manifestEntry:] {
		f := listed{
			number:     binary.BigEndian.Uint32(b),
			records:    binary.BigEndian.Uint32(b[4:]),
			objects:    binary.BigEndian.Uint32(b[8:]),
			tombstones: binary.BigEndian.Uint32(b[12:]),
			end:        int64(binary.BigEndian.Uint64(b[16:])),
			live:       int64(binary.BigEndian.Uint64(b[24:])),
			dead:       int64(binary.BigEndian.Uint64(b[32:])),
		}
		ascending := len(files) == 0 || files[len(files)-1].number < f.number
		if f.number == 0 || f.number > number || !ascending || f.end < 0 || f.live < 0 || f.dead < 0 {
			return nil, false
		}
		files = append(files, f)
	}
	return files, true
}
