package fstree

import "io"

var _ io.ReaderFrom = (*writer)(nil)

// maxIdle is how often in a row a source may return nothing before that is io.ErrNoProgress.
const maxIdle = 100

// ReadFrom appends what src holds, as in [io.ReaderFrom]; n counts the bytes that the blob has taken. An error of
// src is returned as it is and leaves the writer usable, as one would be whose caller reads src himself; all
// others are those of Write. No lock is held while src is read: Close of the Tree does not wait for it.
func (w *writer) ReadFrom(src io.Reader) (n int64, err error) {
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	// The first piece fills the writer's own buffer, so that the others need no copy.
	room, err := w.room()
	if err != nil {
		return 0, w.t.reportPlain("write", err)
	}
	for err == nil {
		var k int
		k, err = fill(src, buf[:room])
		k, e := w.Write(buf[:k])
		if n += int64(k); e != nil {
			return n, e
		}
		room = bufferSize
	}
	if err == io.EOF { //nolint:errorlint // A source must return io.EOF itself.
		return n, nil
	}
	return n, err
}

// room returns how many bytes the writer's buffer can take.
func (w *writer) room() (int, error) {
	if err := w.enter(); err != nil {
		return 0, err
	}
	defer w.t.leaveWrite()
	return bufferSize - w.held, nil
}

// fill reads until b is full, or src has ended or fails.
func fill(src io.Reader, b []byte) (n int, err error) {
	for idle := 0; n < len(b) && err == nil; idle++ {
		var k int
		if k, err = src.Read(b[n:]); k > 0 {
			n, idle = n+k, 0
		} else if err == nil && idle == maxIdle {
			err = io.ErrNoProgress
		}
	}
	return n, err
}
