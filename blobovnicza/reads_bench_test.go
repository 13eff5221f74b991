package blobovnicza

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"github.com/granary-store/granary/blobstor"
)

func granaryReads(s *Tree, locations []blobstor.Location) contestant {
	return contestant{
		get: func() readFunc {
			var dst []byte
			return func(n int) (err error) {
				dst, err = s.Get(ctx, benchAddr(blobAt(n)), locations[n%storeSize], dst[:0])
				return err
			}
		},
		find: func() readFunc {
			var dst []byte
			return func(n int) (err error) {
				dst, err = s.Get(ctx, benchAddr(blobAt(n)), "", dst[:0])
				return err
			}
		},
		hit: func() readFunc {
			return func(n int) error {
				_, err := s.Stat(ctx, benchAddr(blobAt(n)), "")
				return err
			}
		},
		miss: func() readFunc {
			return func(n int) error {
				if _, err := s.Stat(ctx, benchAddr(-1-n), ""); !errors.Is(err, blobstor.ErrNotFound) {
					return fmt.Errorf("miss: %w", err)
				}
				return nil
			}
		},
		iterate: func() (count int, err error) {
			for _, err := range s.All(ctx, "") {
				if err != nil {
					return 0, err
				}
				count++
			}
			return count, nil
		},
	}
}

// preadReads reads the bytes that granary's records have, and verifies the checksum: what a get cannot do without.
func preadReads(dir string, s *Tree, locations []blobstor.Location) contestant {
	type source struct {
		f      *os.File
		off    int64
		length uint32
		seed   uint32
	}
	files := map[uint32]*os.File{}
	sources := make([]source, len(locations))
	for i, at := range locations {
		_, p, _ := parseLocation(at)
		if files[p.file] == nil {
			// An error shows when it is read from.
			files[p.file], _ = os.Open(filepath.Join(leafPath(dir, s, 0), dataName(p.file)))
		}
		sources[i] = source{files[p.file], p.off, p.length, fileSeed(s.storeID, 0, p.file)}
	}
	return contestant{get: func() readFunc {
		buf := make([]byte, recordSize(kindPut, 4096))
		return func(n int) error {
			from := &sources[n%storeSize]
			buf := buf[:recordSize(kindPut, from.length)]
			if _, err := from.f.ReadAt(buf, from.off); err != nil {
				return err
			}
			h, ok := parseHeader(buf, from.seed, from.off)
			if !ok || !verifyBlocks(&h, buf[headerSize:headerSize+from.length], buf[headerSize+from.length:]) {
				return blobstor.ErrCorrupt
			}
			return nil
		}
	}}
}

var errMissing = errors.New("missing")

func boltReads(db *bbolt.DB) contestant {
	view := func(n int, f func(v []byte) error) error {
		return db.View(func(tx *bbolt.Tx) error {
			addr := benchAddr(n)
			return f(tx.Bucket(boltBucket).Get(boltKey(&addr)))
		})
	}
	return contestant{
		get: func() readFunc {
			var dst []byte
			return func(n int) error {
				return view(blobAt(n), func(v []byte) error { dst = append(dst[:0], v...); return nil })
			}
		},
		hit: func() readFunc {
			return func(n int) error {
				return view(blobAt(n), func(v []byte) error {
					if v == nil {
						return errMissing
					}
					return nil
				})
			}
		},
		miss: func() readFunc {
			return func(n int) error { return view(storeSize+n, func(v []byte) error { return nil }) }
		},
		iterate: func() (count int, err error) {
			return count, db.View(func(tx *bbolt.Tx) error {
				return tx.Bucket(boltBucket).ForEach(func(k, v []byte) error { count++; return nil })
			})
		},
	}
}
