package main

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/granary-store/granary/metabase/pilorama"
)

const (
	deadline  = 5 * time.Second
	perRate   = 5 // callers at most, for each operation a second
	inSystem  = 10
	directory = 100 // over which paths are spread
)

// load makes operations at the rate, each at its time whether those before have come back or not, so that a slow moment
// counts for all who would have come in it.
func (c *cluster) load(ctx context.Context) result {
	m := meter{began: time.Now()}
	var calls sync.WaitGroup
	callers := make(chan struct{}, perRate*c.rate)
	start := func(at time.Time, call func(context.Context) error) {
		select {
		case callers <- struct{}{}:
		default: // as if it had met its deadline
			m.note(at, deadline, context.DeadlineExceeded)
			return
		}
		calls.Go(func() {
			defer func() { <-callers }()
			ctx, cancel := context.WithDeadline(ctx, at.Add(deadline))
			defer cancel()
			err := call(ctx)
			m.note(at, time.Since(at), err)
		})
	}
	total, cut := int(c.duration.Seconds()*float64(c.rate)), false
	for i, inner := 0, 0; i < total && ctx.Err() == nil; i++ {
		after := time.Duration(float64(i) / float64(c.rate) * float64(time.Second))
		at := m.began.Add(after)
		time.Sleep(time.Until(at))
		start(at, func(ctx context.Context) error { return c.version(ctx, i) })
		if after*inSystem >= time.Duration(inner)*time.Second {
			n := inner
			start(at, func(ctx context.Context) error { return c.note(ctx, n) })
			inner++
		}
		if c.partition > 0 {
			if in := after >= (c.duration-c.partition)/2 && after < (c.duration+c.partition)/2; in != cut {
				cut = in
				c.cut(cut)
			}
		}
		if i%(10*c.rate) == 10*c.rate-1 {
			fmt.Fprintln(c.progress, m.progress())
		}
	}
	c.cut(false)
	calls.Wait()
	return m.result(c.duration)
}

// version adds what a gateway of S3 adds for an object: seven attributes, below a path of its own.
func (c *cluster) version(ctx context.Context, i int) error {
	return c.on(i).add(ctx, versions, []string{fmt.Sprint("dir", i%directory)}, []pilorama.Attr{
		{Key: pilorama.FileName, Value: fmt.Sprint("object", i)}, {Key: "OID", Value: "FVAc9SX6cAYfZF3mWZbPaxpUcxRfEgyPrpfgbCVx2eoC"}, {Key: "IsUnversioned", Value: "true"},
		{Key: "ETag", Value: "d41d8cd98f00b204e9800998ecf8427e"}, {Key: "Size", Value: "1048576"}, {Key: "Owner", Value: "NTrezR3C4X8aMLVg7vozt5wguyNfFhwuFx"}, {Key: "Created", Value: "1661946382"},
	})
}

func (c *cluster) note(ctx context.Context, n int) error {
	return c.on(n).add(ctx, system, nil, []pilorama.Attr{{Key: pilorama.FileName, Value: fmt.Sprint("setting", n%50)}, {Key: "n", Value: fmt.Sprint(n)}})
}

func (c *cluster) on(i int) *replica {
	if c.one {
		return c.replicas[0]
	}
	return c.replicas[i%len(c.replicas)]
}

// meter counts latencies.
type meter struct {
	began time.Time

	mu      sync.Mutex
	all     histogram
	recent  histogram   // since the last progress
	minutes []histogram // by when it was to begin
	errors  int
	err     error // the first
}

func (m *meter) note(at time.Time, took time.Duration, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		if m.errors++; m.err == nil {
			m.err = err
		}
		return
	}
	minute := int(at.Sub(m.began) / time.Minute)
	for len(m.minutes) <= minute {
		m.minutes = append(m.minutes, histogram{})
	}
	m.all.add(took)
	m.recent.add(took)
	m.minutes[minute].add(took)
}

func (m *meter) progress() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.recent
	m.recent = histogram{}
	return fmt.Sprintf("%v: average %v, p99 %v, %d errors", time.Since(m.began).Round(time.Second), round(r.average()), round(r.quantile(0.99)), m.errors)
}

func (m *meter) result(length time.Duration) result {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := result{average: m.all.average(), p50: m.all.quantile(0.5), p95: m.all.quantile(0.95), p99: m.all.quantile(0.99), errors: m.errors, first: m.err}
	for i := range m.minutes {
		r.minutes = append(r.minutes, m.minutes[i].average())
	}
	r.rate = float64(m.all.n) / max(length, time.Since(m.began)).Seconds()
	return r
}

// histogram counts durations in buckets that are two percent wide.
type histogram struct {
	n       int
	sum     time.Duration
	buckets [1024]int32
}

const perDoubling = 32

func (h *histogram) add(d time.Duration) {
	h.n++
	h.sum += d
	at := int(perDoubling * math.Log2(max(1, float64(d)/float64(time.Microsecond))))
	h.buckets[min(at, len(h.buckets)-1)]++
}

func (h *histogram) average() time.Duration { return h.sum / time.Duration(max(1, h.n)) }

func (h *histogram) quantile(q float64) time.Duration {
	left := int(math.Ceil(q * float64(h.n)))
	for at, n := range h.buckets {
		if left -= int(n); left <= 0 {
			return time.Duration(math.Exp2(float64(at+1)/perDoubling) * float64(time.Microsecond))
		}
	}
	return 0
}
