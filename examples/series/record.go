package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"math"
	"time"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/tsz"
)

// blockPoints is how many points a block gets. More take fewer bits each; fewer are lost if the program dies.
const blockPoints = 120

// metric is one series that is being recorded.
type metric struct {
	name  string
	value func(since time.Duration) float64
	open  *tsz.Encoder // the points that are in no block yet
	total int
	mixed uint64 // all points so far, to compare with what is read
}

// recorder looks at a store in intervals.
type recorder struct {
	store      *store
	metrics    []*metric
	last       time.Time
	puts, wait int64 // as they were then
}

func newRecorder(s *store) *recorder {
	r := &recorder{store: s, last: time.Now()}
	add := func(name string, value func(time.Duration) float64) {
		r.metrics = append(r.metrics, &metric{name: name, value: value, open: tsz.NewEncoder(tsz.Microseconds, 0, nil)})
	}
	add("puts/s", func(since time.Duration) float64 {
		return math.Round(float64(s.puts.Load()-r.puts) / since.Seconds())
	})
	add("latency", func(time.Duration) float64 { // of a put, in us; NaN if there was none
		return math.Round(float64(s.wait.Load()-r.wait)/float64(s.puts.Load()-r.puts)/100) / 10
	})
	add("bytes", func(time.Duration) float64 { return float64(s.tree.Stats().Live) })
	return r
}

// tick records one point of each series.
func (r *recorder) tick(ctx context.Context, at time.Time) error {
	since := time.Since(r.last)
	for _, m := range r.metrics {
		err := m.append(at.UnixMicro(), m.value(since))
		if err == nil && m.open.Len() == blockPoints {
			err = m.seal(ctx, r.store)
		}
		if err != nil {
			return err
		}
	}
	r.last, r.puts, r.wait = r.last.Add(since), r.store.puts.Load(), r.store.wait.Load()
	return nil
}

// append adds a point. A clock that was set back loses some.
func (m *metric) append(t int64, v float64) error {
	err := m.open.Append(t, v)
	if errors.Is(err, tsz.ErrDuplicate) || errors.Is(err, tsz.ErrOutOfOrder) {
		return nil
	}
	if err == nil {
		m.total++
		m.mixed = mix(m.mixed, t, v)
	}
	return err
}

// seal makes a block of the open points and stores it. When it returns nil they are durable.
func (m *metric) seal(ctx context.Context, s blobstor.Storage) error {
	var d tsz.Decoder
	d.ResetSnapshot(m.open.Snapshot())
	ts, vs := make([]int64, m.open.Len()), make([]float64, m.open.Len())
	if _, err := d.DecodeAll(ts, vs); err != nil {
		return err
	}
	block, err := tsz.Seal(nil, tsz.Microseconds, ts, vs)
	if err != nil || len(block) == 0 {
		return err
	}
	addr := blobstor.Address{Container: container(m.name), Object: sha256.Sum256(block)}
	if _, err := s.Put(ctx, addr, block); err != nil {
		return err
	}
	m.open.Reset(ts[len(ts)-1])
	return nil
}

// close seals what is open.
func (r *recorder) close(ctx context.Context) error {
	for _, m := range r.metrics {
		if err := m.seal(ctx, r.store); err != nil {
			return err
		}
	}
	return nil
}

// mix is a sum of points that tells order and every bit.
func mix(sum uint64, t int64, v float64) uint64 {
	const odd = 0x9e3779b97f4a7c15
	return ((sum^uint64(t))*odd ^ math.Float64bits(v)) * odd
}
