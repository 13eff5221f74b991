package fstree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/granary-store/granary/blobstor"
)

// maxFlaws bounds what a ScrubReport lists; a disk that dies has more to say than anybody reads.
const maxFlaws = 1000

// ScrubOptions are what [Tree.Scrub] can be told. The zero value reads everything as fast as it can.
type ScrubOptions struct {
	// After is where to go on: what Next of the last report was. Empty, or no location, is the start.
	After blobstor.Location

	// Rate is how many bytes a second are read at most; 0 means no limit.
	Rate int64

	// Limit ends the call after a blob when so many bytes were read; 0 means no limit. A call gets through one blob
	// at least.
	Limit int64
}

// ScrubReport is what [Tree.Scrub] found.
type ScrubReport struct {
	Next blobstor.Location // where the next Scrub goes on; empty when this one came to the end

	Blobs int64 // read whole and right
	Bytes int64 // read, of any blob

	Corrupt int64 // damaged blobs, and directories that are missing
	Failed  int64 // blobs and directories that could not be read, for another reason

	// Flaws are the first 1,000 that Corrupt and Failed count, in the order of locations. Each is a
	// *[blobstor.Error]; it has a location, and an address if it is a blob's.
	Flaws []error
}

// OK reports whether all that was to be read was read, and nothing of it is damaged.
func (r *ScrubReport) OK() bool { return r.Corrupt == 0 && r.Failed == 0 }

// Scrub reads blobs, in the order of locations, and verifies every byte of their files. What is damaged it reports,
// and tells Hooks.Corrupt; it changes nothing, so reads of the blob go on being blobstor.ErrCorrupt until a Put heals
// it. It goes on after damage and after what it cannot read. What is deleted or healed meanwhile is no damage. What the
// system has cached may be read from there, not from the disk.
//
// The error is ctx's, or blobstor.ErrClosed. There is always a report; a program that keeps its Next goes on from there
// later, also after a reopen, and gets over all blobs that are there throughout. Blobs may then be read twice,
// for two may share a location.
//
// Scrub runs beside all other calls, and holds up neither them nor Close.
func (t *Tree) Scrub(ctx context.Context, o *ScrubOptions) (*ScrubReport, error) {
	s := &scrub{t: t, ctx: ctx}
	if o != nil {
		s.opts = *o
	}
	err := s.run()
	return &s.report, t.reportPlain("scrub", err)
}

// scrub is a Scrub that runs.
type scrub struct {
	t      *Tree
	ctx    context.Context
	opts   ScrubOptions
	report ScrubReport
	free   time.Time // when the rate allows the next read
}

func (s *scrub) run() error {
	if s.opts.Rate < 0 || s.opts.Limit < 0 {
		return misuse(fmt.Sprintf("rate %d, limit %d, want no negative ones", s.opts.Rate, s.opts.Limit))
	}
	if len(s.opts.After) == 8 {
		s.report.Next = s.opts.After
	}
	for at := range s.t.walk(s.ctx, s.opts.After) {
		if endsAll(at.err) {
			return at.err
		}
		s.report.Next = max(s.report.Next, location(at.key))
		if s.opts.Limit > 0 && s.report.Bytes >= s.opts.Limit {
			return nil
		}
		err := at.err
		if err == nil {
			err = s.verify(at.place)
		}
		if endsAll(err) {
			return err
		}
		s.note(at.place, err)
	}
	s.report.Next = ""
	return nil
}

// note counts what came of a blob or a directory.
func (s *scrub) note(p place, err error) {
	switch {
	case err == nil:
		s.report.Blobs++
		s.t.count.scrubbed.Add(1)
		return
	case errors.Is(err, blobstor.ErrNotFound):
		return
	case errors.Is(err, blobstor.ErrCorrupt):
		s.report.Corrupt++
	default:
		s.report.Failed++
	}
	err = s.t.report("scrub", p, err)
	if len(s.report.Flaws) < maxFlaws {
		s.report.Flaws = append(s.report.Flaws, err)
	}
}

// verify reads a blob. If its file turns out to be damaged and is not the blob's any more, that is no damage.
func (s *scrub) verify(p place) error {
	for {
		r, err := s.t.newReader(s.ctx, p)
		if err != nil {
			return err
		}
		err = s.read(r)
		again := errors.Is(err, blobstor.ErrCorrupt) && !s.t.isCurrent(r.b)
		_ = r.Close() // It was only read from.
		if !again {
			return err
		}
	}
}

// read reads a blob through, without a lock, and with all gates left between any two reads.
func (s *scrub) read(r *reader) error {
	if err := s.wait(storedSize(r.b.size) - r.b.size); err != nil {
		return err
	}
	return r.b.through(s.trail(r.b), func(p []byte, off int64) (int, error) {
		if err := s.wait(int64(len(p))); err != nil {
			return 0, err
		}
		return r.readAt(p, off)
	})
}

// trail reads nothing ahead if there is a rate, for a hint asks the disk for 8 MiB at once.
func (s *scrub) trail(b *blob) trail {
	t := b.trail(0)
	if s.opts.Rate > 0 {
		t.told = b.size
	}
	return t
}

// wait waits until the rate allows to read n bytes, and counts them. Time in which nothing was read gives no credit:
// the disk is never asked for more than the rate.
func (s *scrub) wait(n int64) error {
	s.report.Bytes += n
	s.t.count.scrubbedBytes.Add(uint64(n))
	if s.opts.Rate == 0 {
		return nil
	}
	if now := time.Now(); s.free.Before(now) {
		s.free = now
	}
	delay := time.Until(s.free)
	s.free = s.free.Add(time.Duration(float64(n) / float64(s.opts.Rate) * float64(time.Second)))
	if delay <= 0 {
		return nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.t.closing:
		return blobstor.ErrClosed
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// isCurrent reports whether an open file still is the blob's. Where it cannot tell it is.
func (t *Tree) isCurrent(b *blob) bool {
	f, err := t.openFile(b.p)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	same, err := f.Same(b.f)
	return err != nil || same
}
