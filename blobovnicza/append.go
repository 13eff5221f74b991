package blobovnicza

import "github.com/granary-store/granary/internal/durable"

const (
	// writeSize bounds one write call: calls of 4 to 16 MiB were measured to run at a quarter of the speed.
	writeSize = 1 << 20

	// directSize is the payload from which on it is written from the caller's memory: below it a copy costs
	// less than one more write call.
	directSize = 128 << 10
)

// appender gathers records and writes them in few calls.
type appender struct {
	f       *durable.File
	off     int64 // where buf goes
	buf     []byte
	written int64 // since start
}

func (a *appender) start(f *durable.File, off int64) {
	a.f, a.off, a.buf, a.written = f, off, a.buf[:0], 0
}

// record appends a record, which must lie at off, and sets h.crc.
func (a *appender) record(h *header, seed uint32, off int64, payload []byte) error {
	direct := len(payload) >= directSize
	if !direct && int64(len(a.buf))+h.size() > writeSize {
		if err := a.flush(); err != nil {
			return err
		}
	}
	a.buf = appendHeader(a.buf, h, seed, off)
	if !direct {
		a.buf = append(a.buf, payload...)
		a.buf = appendTrailer(a.buf, h, payload)
		return nil
	}
	if err := a.flush(); err != nil {
		return err
	}
	for rest := payload; len(rest) > 0; {
		n := min(len(rest), writeSize)
		if err := a.write(rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	a.buf = appendTrailer(a.buf, h, payload)
	return nil
}

// flush writes what was gathered.
func (a *appender) flush() error {
	err := a.write(a.buf)
	a.buf = a.buf[:0]
	return err
}

func (a *appender) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	_, err := a.f.WriteAt(b, a.off)
	a.off += int64(len(b))
	a.written += int64(len(b))
	return err
}
