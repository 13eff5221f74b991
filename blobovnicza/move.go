package blobovnicza

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/granary-store/granary/blobstor"
)

const (
	// moveSize is how much compaction moves with one commit: as much as there may be in one.
	moveSize = groupBytes / 2

	// politeSize is how much it moves in the background, because others wait for it.
	politeSize = 256 << 10
)

var moveBufs = sync.Pool{New: func() any { return new([]byte) }}

// move copies the live records behind the end of the active file. That some are damaged is an error in the end.
func (c *compaction) move(ctx context.Context) error {
	todo, err := c.file.rows()
	if err != nil {
		return err
	}
	slices.SortFunc(todo, func(a, b row) int { return cmp.Compare(a.entry, b.entry) })
	for len(todo) > 0 && err == nil {
		todo, err = c.moveRows(ctx, todo)
	}
	if err == nil && c.damaged {
		return corruptFile(c.leaf, c.file)
	}
	return err
}

// moveRows copies rows, which are in the order of offsets, and returns those that changed meanwhile: look again. While
// one part is committed the next is read.
func (c *compaction) moveRows(ctx context.Context, todo []row) (stale []row, err error) {
	ctx, cancel := context.WithCancel(ctx)
	parts := make(chan *mover)
	var readErr error
	go func() {
		defer close(parts)
		readErr = c.gatherAll(ctx, todo, parts)
	}()
	defer func() {
		cancel()
		for range parts { // until the reader has ended
		}
		err = firstOf(err, readErr)
	}()
	for m := range parts {
		c.damaged = c.damaged || m.damaged
		begin := time.Now()
		again, err := m.commit(ctx)
		buf := m.buf
		moveBufs.Put(&buf)
		if err == nil {
			err = c.rest(ctx, time.Since(begin), m.size)
		}
		if err != nil {
			return nil, err
		}
		stale = append(stale, again...)
	}
	return stale, nil
}

// gatherAll sends the rows part by part, each with the copies to commit.
func (c *compaction) gatherAll(ctx context.Context, todo []row, parts chan<- *mover) (err error) {
	source := &scanner{f: c.file, size: c.file.end.Load()}
	size := int64(moveSize)
	if c.polite {
		size = politeSize
	}
	for len(todo) > 0 {
		buf := *moveBufs.Get().(*[]byte)
		m := &mover{leaf: c.leaf, file: c.file, source: source, limit: size, buf: slices.Grow(buf[:0], int(size))}
		if todo, err = m.gather(todo); err != nil {
			return err
		}
		select {
		case parts <- m:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// rest waits before the next commit: for the rate, and in the background, unless space is short, as long as the last
// one took.
func (c *compaction) rest(ctx context.Context, took time.Duration, n int64) error {
	if c.polite && c.pace.rate == 0 && !c.leaf.tree.shortOfSpace() {
		if err := sleep(ctx, took); err != nil {
			return err
		}
	}
	return c.pace.wait(ctx, n)
}

// mover copies some records of a file in one commit.
type mover struct {
	leaf   *leaf
	file   *file
	source *scanner
	limit  int64
	req    request
	from   []row  // of each operation
	buf    []byte // their payloads
	size   int64

	damaged bool // a live record cannot be read
}

// gather takes live records up to the size of one commit and returns the rest.
func (m *mover) gather(todo []row) ([]row, error) {
	for len(todo) > 0 && m.size < m.limit && len(m.req.ops) < groupOps {
		if err := m.add(&todo[0]); err != nil && !errors.Is(err, errDropped) {
			return nil, err
		} else if err == nil {
			todo = todo[1:]
		}
	}
	return todo, nil
}

// add queues a copy of a record if it is live: the newest of its address, and no tombstone that nothing needs.
func (m *mover) add(e *row) error {
	v := m.leaf.version.Load()
	o := op{move: true, key: e.key}
	live, err := m.leaf.isNewest(v, m.file, e, &o.found)
	if err != nil || !live {
		return err
	}
	if e.entry.tombstone() {
		needed, err := m.leaf.needed(v, m.file, e)
		if err != nil || !needed {
			return err
		}
	}
	h, payload, err := m.read(e)
	if errors.Is(err, blobstor.ErrCorrupt) {
		m.damaged = true
		m.leaf.tree.log.Error("file stays: a blob is damaged", "leaf", m.leaf.id, "file", m.file.number, "off", e.entry.off())
		return nil
	}
	if err != nil {
		return err
	}
	o.hdr = header{kind: h.kind, address: h.address, length: h.length}
	start := len(m.buf)
	m.buf = append(m.buf, payload...)
	o.data = m.buf[start:]
	m.req.ops, m.from = append(m.req.ops, o), append(m.from, *e)
	m.size += o.hdr.size()
	return nil
}

// read returns the record of an entry, verified. The payload is valid until the next call.
func (m *mover) read(e *row) (h header, payload []byte, err error) {
	kind := kindPut
	if e.entry.tombstone() {
		kind = kindTombstone
	}
	size := recordSize(kind, e.entry.length())
	b, err := m.source.window(e.entry.off(), size)
	if err != nil {
		return h, nil, err
	}
	if int64(len(b)) < size {
		return h, nil, blobstor.ErrCorrupt
	}
	h, ok := parseHeader(b, m.file.seed, e.entry.off())
	if !ok || h.kind != kind || h.length != e.entry.length() || h.address != e.address {
		return h, nil, blobstor.ErrCorrupt
	}
	payload = b[headerSize : headerSize+int64(h.length)]
	if !verifyBlocks(&h, payload, b[headerSize+int64(h.length):]) {
		return h, nil, blobstor.ErrCorrupt
	}
	return h, payload, nil
}

// commit writes the copies that are still current, and returns the records of those that may not be: look again.
func (m *mover) commit(ctx context.Context) (stale []row, err error) {
	if len(m.req.ops) == 0 {
		return nil, ctx.Err()
	}
	l := m.leaf
	err = l.tree.unlessReadOnly(func() error { return l.do(ctx, &m.req, m.size) })
	if err != nil {
		return nil, err
	}
	for i := range m.req.ops {
		o := &m.req.ops[i]
		switch {
		case o.err != nil:
			return nil, o.err
		case o.stale:
			stale = append(stale, m.from[i])
		default:
			l.tree.moved.Add(o.hdr.size())
		}
	}
	return stale, nil
}

// isNewest reports whether no file newer than f has a record of the row's address, and notes in found what the
// committer compares.
func (l *leaf) isNewest(v *version, f *file, e *row, found *hit) (bool, error) {
	last := len(v.files) - 1
	found.active = v.files[last].number
	found.newest = e.entry.in(f.number)
	for i := v.below(last, e.key); i >= 0 && v.files[i].number > f.number; i = v.below(i-1, e.key) {
		if at, err := v.files[i].getRow(e.key, &e.address, false); err != nil || at != 0 {
			return false, err
		}
	}
	return true, nil
}

// needed reports whether a tombstone in f hides a blob in an older file, or in one that cannot be looked at.
func (l *leaf) needed(v *version, f *file, e *row) (bool, error) {
	if l.hasLost() {
		return true, nil
	}
	for i, older := range v.files {
		if older.number >= f.number {
			return false, nil
		}
		if older.noIndex.Load() {
			return true, nil
		}
		if !v.mayHold(i, e.key) {
			continue
		}
		at, err := older.get(e.key, &e.address)
		if err != nil || at != 0 {
			return true, err
		}
	}
	return false, nil
}

func corruptFile(l *leaf, f *file) error {
	return fmt.Errorf("%w: leaf %d, file %d holds damaged blobs and cannot be compacted", blobstor.ErrCorrupt, l.id, f.number)
}
