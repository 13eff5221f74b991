package fstree

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/granary-store/granary/blobstor"
)

// place is where a blob belongs: pure arithmetic on its address and the store's ID.
type place struct {
	addr blobstor.Address
	key  uint64 // the first 8 bytes of SHA-256(store ID, address); the location
}

func placeOf(store [16]byte, addr blobstor.Address) place {
	var in [len(store) + blobstor.AddressSize]byte
	copy(in[:], store[:])
	copy(in[16:], addr.Container[:])
	copy(in[48:], addr.Object[:])
	sum := sha256.Sum256(in[:])
	return place{addr: addr, key: locationKey(sum[:8])}
}

// name is the file's name, 128 hexadecimal digits: safe where names ignore case.
func (p place) name() string {
	var digits [2 * blobstor.AddressSize]byte
	hex.Encode(digits[:64], p.addr.Container[:])
	hex.Encode(digits[64:], p.addr.Object[:])
	return string(digits[:])
}

// parseName is the inverse of name. It accepts nothing that name does not make.
func parseName(name string) (blobstor.Address, bool) {
	if len(name) != 2*blobstor.AddressSize {
		return blobstor.Address{}, false
	}
	var b [blobstor.AddressSize]byte
	for i := range b {
		hi, lo := digit(name[2*i]), digit(name[2*i+1])
		if hi < 0 || lo < 0 {
			return blobstor.Address{}, false
		}
		b[i] = byte(hi<<4 | lo)
	}
	addr, err := blobstor.AddressFromBytes(b[:])
	return addr, err == nil
}

func digit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	}
	return -1
}

// dirKey names a directory of the tree: its level, 0 for the root, in the top byte, and the bytes of the hash
// that lead to it in the low ones.
type dirKey uint32

const rootKey dirKey = 0

// dir is the directory of p in a tree of the given depth.
func (p place) dir(depth int) dirKey {
	return dirKey(depth)<<24 | dirKey(p.key>>(64-8*depth))
}

func (k dirKey) level() int { return int(k >> 24) }

func (k dirKey) parent() dirKey { return dirKey(k.level()-1)<<24 | k&0xffffff>>8 }

func (k dirKey) child(b byte) dirKey { return dirKey(k.level()+1)<<24 | (k&0xffffff)<<8 | dirKey(b) }

// name is the directory's name in its parent, two digits.
func (k dirKey) name() string { return levelName(byte(k)) }

// first is the smallest location key that a blob below the directory can have, last the largest.
func (k dirKey) first() uint64 { return uint64(k&0xffffff) << (64 - 8*k.level()) }

func (k dirKey) last() uint64 { return k.first() | ^uint64(0)>>(8*k.level()) }

func levelName(b byte) string { return hex.EncodeToString([]byte{b}) }

// firstLevel are the names of the directories in the root of a tree that has levels.
func firstLevel() []string {
	names := make([]string, 256)
	for b := range names {
		names[b] = levelName(byte(b))
	}
	return names
}

// sortPlaces sorts by location, and blobs that share one by address.
func sortPlaces(places []place) { slices.SortFunc(places, place.compare) }

func (p place) compare(q place) int { return cmp.Or(cmp.Compare(p.key, q.key), p.addr.Compare(q.addr)) }

// parseLevel is the inverse of levelName.
func parseLevel(name string) (byte, bool) {
	b, err := strconv.ParseUint(name, 16, 8)
	if err != nil || levelName(byte(b)) != name {
		return 0, false
	}
	return byte(b), true
}
