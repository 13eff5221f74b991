package blobovnicza

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/granary-store/granary/internal/durable"
)

// audit is the check of one file.
type audit struct {
	file   *file
	active bool
	end    int64 // as of the snapshot
	before Counts

	disk     *file // what bears the file's name, whatever the store has open
	size     int64 // what of the file is there, up to end
	missing  bool
	torn     int64 // bytes of holes that an unfinished commit left
	scan     *scan
	hurt     []scanned // of the scan's records those with a damaged payload
	rows     []row     // the newest record of each address; none if the index is trusted
	distinct int       // how many these are
	damage   []Damage
	index    complaints
	err      error
	trusted  bool // the index file says the same as rows
	certain  bool // no address is lost
}

// newAudit notes what is believed of a file. It is called between two commits.
func newAudit(f *file, active bool) *audit {
	return &audit{file: f, active: active, end: f.end.Load(), before: Counts{
		Records:    f.records.Load(),
		Objects:    f.objects.Load(),
		Tombstones: f.tombstones.Load(),
		Live:       f.live.Load(),
		Dead:       f.dead.Load(),
	}}
}

// run reads the file and its index. What goes wrong is part of the result.
func (a *audit) run(ctx context.Context) {
	if a.file.data.name == "" {
		return
	}
	a.disk = a.file.leaf.newFile(a.file.number)
	defer func() { a.disk.data.close(); a.disk.idx.close() }()
	if a.err = a.read(ctx); a.err != nil {
		return
	}
	a.rows = a.file.recall(a.scan).sorted()
	a.compareIndex()
	a.distinct = len(a.rows)
	a.mapDamage()
	if a.trusted {
		a.rows = nil
	}
}

// read scans the data file and verifies all payloads.
func (a *audit) read(ctx context.Context) error {
	err := a.file.leaf.inDir(func(dir *durable.Dir) (err error) {
		a.size, err = dir.Stat(a.file.data.name)
		return err
	})
	if a.missing = errors.Is(err, fs.ErrNotExist); a.missing {
		a.size, err = 0, nil
	}
	if err != nil {
		return err
	}
	a.size = min(a.size, a.end)
	a.disk.end.Store(a.size)
	a.scan, err = scanEach(a.disk, 0, a.size, 0, func(s *scanner, h *header, off int64) error {
		whole, err := verifyRecord(s, h, off)
		if err == nil && !whole {
			a.hurt = append(a.hurt, scanned{*h, off})
		}
		return firstOf(err, ctx.Err())
	})
	if err != nil {
		return err
	}
	if a.scan.end < a.end {
		a.scan.holes = append(a.scan.holes, span{a.scan.end, a.end})
	}
	a.skipTorn()
	return nil
}

// verifyRecord reports whether the payload of a record with a whole header is whole.
func verifyRecord(s *scanner, h *header, off int64) (bool, error) {
	if h.kind == kindVoid {
		return true, nil
	}
	b, err := s.window(off, h.size())
	if err != nil {
		return false, err
	}
	payload := b[headerSize:][:h.length]
	if !verifyBlocks(h, payload, b[headerSize+int(h.length):]) {
		return false, nil
	}
	if h.kind == kindManifest {
		_, ok := parseManifest(payload, s.f.number)
		return ok, nil
	}
	return true, nil
}

// skipTorn takes the holes of a torn commit out, which a store that is opened read-only leaves without a void.
func (a *audit) skipTorn() {
	if !a.active || !a.file.leaf.tree.opts.ReadOnly {
		return
	}
	a.scan.holes = slices.DeleteFunc(a.scan.holes, func(hole span) bool {
		torn := hole.from >= a.scan.proven && hole.from > 0 && hole.to < a.end
		if torn {
			a.torn += hole.to - hole.from
		}
		return torn
	})
}

// inHole reports whether a record at off was lost to damage.
func (a *audit) inHole(off int64) bool {
	holes := a.scan.holes // in the order of offsets
	i, _ := slices.BinarySearchFunc(holes, off, func(h span, off int64) int { return cmp.Compare(h.to, off+1) })
	return i < len(holes) && holes[i].from <= off
}

// mapDamage lists what is damaged, in the order of offsets. Parts of a hole that no known record fills are without
// an address.
func (a *audit) mapDamage() {
	known := a.damage
	for i := range a.hurt {
		h := &a.hurt[i]
		d := Damage{Offset: h.off, Length: h.size()}
		if h.kind == kindPut || h.kind == kindTombstone {
			d.Address, d.Known, d.Tombstone = h.address, true, h.kind == kindTombstone
			d.key, d.length = a.file.leaf.tree.sortKey(h.address), h.length
		}
		known = append(known, d)
	}
	slices.SortFunc(known, func(x, y Damage) int { return cmp.Compare(x.Offset, y.Offset) })
	a.damage, a.certain = nil, a.index.n == 0 || len(a.scan.holes) == 0
	for _, hole := range a.scan.holes {
		for len(known) > 0 && known[0].Offset < hole.to {
			d := known[0]
			if a.inHole(d.Offset) {
				if d.Offset > hole.from {
					a.addGap(span{hole.from, d.Offset})
				}
				hole.from = d.Offset + d.Length
			}
			a.damage, known = append(a.damage, d), known[1:]
		}
		if hole.from < hole.to {
			a.addGap(hole)
		}
	}
	a.damage = append(a.damage, known...)
}

func (a *audit) addGap(s span) {
	a.damage = append(a.damage, Damage{Offset: s.from, Length: s.to - s.from})
	a.certain = false
}

// report says what was found, without what only the other files tell.
func (a *audit) report() *FileReport {
	r := &FileReport{
		Leaf: int(a.file.leaf.id), Number: a.file.number, Size: a.end,
		Counters: a.before, Counted: a.before,
		Missing: a.missing, Damage: a.damage, Index: a.index.list(), Err: a.err,
	}
	if a.err == nil {
		r.Foreign = !a.missing && a.size > 0 && len(a.scan.records) == 0
		r.Short = !a.missing && !r.Foreign && a.size < a.end
	}
	return r
}

// count counts the file's records; those of the view are the newest in the file.
func (a *audit) count(v *view, c *Counts) error {
	*c = Counts{Dead: a.torn}
	if a.scan == nil {
		return nil
	}
	for i := range a.scan.records {
		c.Records++
		if rec := &a.scan.records[i]; rec.kind != kindManifest {
			c.Dead += rec.size()
		}
	}
	for i := range a.damage {
		if d := &a.damage[i]; d.Known && a.inHole(d.Offset) {
			c.Records++
			c.Dead += d.Length
		}
	}
	n := 0
	for e, err := range v.stream() {
		if errors.Is(err, errHealed) {
			return a.count(v, c)
		}
		if err != nil {
			return err
		}
		if v.live.has(n) && e.entry.off() < a.end {
			p := e.entry.in(a.file.number)
			c.Dead -= p.size()
			if p.tombstone {
				c.Tombstones++
			} else {
				c.Objects, c.Live = c.Objects+1, c.Live+p.size()
			}
		}
		n++
	}
	return nil
}
