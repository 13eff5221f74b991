package blobovnicza

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/groupcommit"
)

// engine is what competes in the benchmarks: durable puts of one blob each.
type engine interface {
	put(addr blobstor.Address, data []byte) error
	close() error
}

// engines opens each contestant in an empty directory, with as many independent files as the tree of that shape
// has leaves; alone says that it has one file whatever the shape.
var engines = []struct {
	name  string
	open  func(b *testing.B, dir string, shape [2]int) engine
	alone bool
}{
	{"granary", openGranary, false},
	{"rawlog", openRawlog, false},
	{"bbolt-batch", func(b *testing.B, dir string, _ [2]int) engine {
		return openBolt(b, dir, (*bbolt.DB).Batch)
	}, true},
	{"bbolt-update", func(b *testing.B, dir string, _ [2]int) engine {
		return openBolt(b, dir, (*bbolt.DB).Update)
	}, true},
	{"bbolt-group", openBoltGroup, true},
}

type granaryEngine struct{ *Tree }

// openGranary makes a store, with GRANARY_PRESENT blobs in it already.
func openGranary(b *testing.B, dir string, shape [2]int) engine {
	if n := present(); n > 0 {
		const others = 1 << 30 // what is put has lesser numbers
		fill(b, dir, Options{Create: true, NoSync: true, Width: shape[0], Depth: shape[1]}, others, others+n, dataOf(2, 4096))
		_ = exec.Command("sync").Run() // or the disk would still be busy with it
	}
	s, err := Open(dir, &Options{Create: true, Width: shape[0], Depth: shape[1]})
	check(b, err)
	return granaryEngine{s}
}

func (e granaryEngine) put(addr blobstor.Address, data []byte) error {
	_, err := e.Put(ctx, addr, data)
	return err
}

func (e granaryEngine) close() error { return e.Close() }

// rawlog is the floor: one append file, our group commit, one fdatasync a commit. It has no checksums, no index,
// no tombstones; it just remembers nothing.
type rawlog struct {
	f       *os.File
	off     int64
	buf     []byte
	commits *groupcommit.Committer[rawRecord]
}

type rawRecord struct {
	addr blobstor.Address
	data []byte
}

// rawlogs are as many of them as a tree of that shape has leaves. Each file's name is durable before the clock
// starts, as those of a tree are.
type rawlogs struct {
	logs []*rawlog
	seed maphash.Seed
}

func openRawlog(b *testing.B, dir string, shape [2]int) engine {
	e := rawlogs{seed: maphash.MakeSeed()}
	for i := range leafCount(shape[0], shape[1]) {
		f, err := os.Create(filepath.Join(dir, fmt.Sprint("log", i)))
		check(b, err)
		check(b, f.Sync())
		r := &rawlog{f: f}
		r.commits = groupcommit.New(groupcommit.Limits{MaxOps: groupOps, MaxBytes: groupBytes}, r.commit, nil)
		e.logs = append(e.logs, r)
	}
	return e
}

func (e rawlogs) put(addr blobstor.Address, data []byte) error {
	r := e.logs[0]
	if n := uint64(len(e.logs)); n > 1 {
		r = e.logs[maphash.Comparable(e.seed, addr)%n]
	}
	return r.commits.Do(ctx, rawRecord{addr, data}, int64(len(data)))
}

func (e rawlogs) close() error {
	var errs []error
	for _, r := range e.logs {
		errs = append(errs, r.f.Close())
	}
	return errors.Join(errs...)
}

func (r *rawlog) commit(group []*groupcommit.Op[rawRecord]) error {
	buf := r.buf[:0]
	for _, op := range group {
		rec := &op.Value
		buf = binary.BigEndian.AppendUint32(buf, uint32(len(rec.data)))
		buf = append(buf, rec.addr.Container[:]...)
		buf = append(buf, rec.addr.Object[:]...)
		buf = append(buf, rec.data...)
	}
	r.buf = buf
	for rest := buf; len(rest) > 0; {
		n := min(len(rest), writeSize)
		if _, err := r.f.WriteAt(rest[:n], r.off); err != nil {
			return err
		}
		r.off, rest = r.off+int64(n), rest[n:]
	}
	return fdatasync(r.f)
}

// bolt is one bbolt file with one bucket, as the ancestors' blobovniczas were at best.
type bolt struct {
	db     *bbolt.DB
	update func(*bbolt.DB, func(*bbolt.Tx) error) error
}

var boltBucket = []byte("blobs")

func openBoltDB(b testing.TB, dir string) *bbolt.DB {
	db, err := bbolt.Open(filepath.Join(dir, "bolt.db"), 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType})
	check(b, err)
	check(b, db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket(boltBucket)
		return err
	}))
	return db
}

func openBolt(b *testing.B, dir string, update func(*bbolt.DB, func(*bbolt.Tx) error) error) engine {
	return bolt{openBoltDB(b, dir), update}
}

func boltKey(addr *blobstor.Address) []byte {
	return append(addr.Container[:len(addr.Container):len(addr.Container)], addr.Object[:]...)
}

func (e bolt) put(addr blobstor.Address, data []byte) error {
	return e.update(e.db, func(tx *bbolt.Tx) error {
		return tx.Bucket(boltBucket).Put(boltKey(&addr), data)
	})
}

func (e bolt) close() error { return e.db.Close() }

// boltGroup is bbolt behind our group commit: one transaction for all that wait.
type boltGroup struct {
	db      *bbolt.DB
	commits *groupcommit.Committer[rawRecord]
}

func openBoltGroup(b *testing.B, dir string, _ [2]int) engine {
	e := &boltGroup{db: openBoltDB(b, dir)}
	e.commits = groupcommit.New(groupcommit.Limits{MaxOps: groupOps, MaxBytes: groupBytes},
		func(group []*groupcommit.Op[rawRecord]) error {
			return e.db.Update(func(tx *bbolt.Tx) error {
				bucket := tx.Bucket(boltBucket)
				for _, op := range group {
					if err := bucket.Put(boltKey(&op.Value.addr), op.Value.data); err != nil {
						return err
					}
				}
				return nil
			})
		}, nil)
	return e
}

func (e *boltGroup) put(addr blobstor.Address, data []byte) error {
	return e.commits.Do(ctx, rawRecord{addr, data}, int64(len(data)))
}

func (e *boltGroup) close() error { return e.db.Close() }

// inParallel calls f(0) to f(b.N-1) from a number of goroutines.
func inParallel(b *testing.B, threads int, f func(n int) error) {
	var wg sync.WaitGroup
	for t := range threads {
		wg.Go(func() {
			for n := t; n < b.N; n += threads {
				if err := f(n); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// benchAddr is addrOf without its cost.
func benchAddr(n int) (a blobstor.Address) {
	binary.BigEndian.PutUint64(a.Object[:], uint64(n)*0x9e3779b97f4a7c15)
	return a
}
