//go:build unix

package blobovnicza

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A store that ages; 6 GB of disk. The log has a line for each tenth.
//
//	go test -run - -bench 'Age$' -benchtime 1x -timeout 4h -v ./blobovnicza
//	for i in 1 2 3 4 5; do go test -run - -bench AgeP99 -benchtime 1x -timeout 1h ./blobovnicza; done
//
// GRANARY_AGE_OBJECTS and GRANARY_AGE_OVERWRITES make both smaller, -short does too.

// BenchmarkAge overwrites a store that is 80 % full ten times, with readers on it. One op is all of that.
func BenchmarkAge(b *testing.B) {
	n := fromEnv(b, "GRANARY_AGE_OBJECTS", shortOr(20_000, 1_000_000))
	overwrites := fromEnv(b, "GRANARY_AGE_OVERWRITES", 10)
	opts := Options{}                      // files follow from MaxSize
	opts.MaxSize = liveSize(n) * 135 / 100 // compaction keeps 80 % live; beyond this, puts are refused
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		a := newAging(b, b.TempDir(), opts, n)
		b.StartTimer()
		check(b, a.run(n*overwrites, agingReaders))
		b.StopTimer()
		check(b, a.verifyAll())
		a.report(b)
		check(b, a.s.Close())
		b.StartTimer()
	}
}

// BenchmarkAgeP99 is the latency of durable puts by 20 writers on a store with garbage, which they add to, with the
// background compactor and without, and without readers, which would hide it. The compactor's options are its
// defaults. One op is an overwrite of the store.
func BenchmarkAgeP99(b *testing.B) {
	n := fromEnv(b, "GRANARY_AGE_OBJECTS", shortOr(20_000, 200_000))
	var off time.Duration
	b.Run("compactor=off", func(b *testing.B) { off = benchmarkAgeP99(b, n, true) })
	b.Run("compactor=on", func(b *testing.B) {
		on := benchmarkAgeP99(b, n, false)
		if off > 0 {
			b.ReportMetric(float64(on)/float64(off), "p99-on/off")
		}
	})
}

// benchmarkAgeP99 returns the p99 of the last op.
func benchmarkAgeP99(b *testing.B, n int, off bool) (p99 time.Duration) {
	opts := agingOptions(n)
	for b.Loop() {
		b.StopTimer()
		opts.Compact.Off = true
		a := newAging(b, b.TempDir(), opts, n)
		check(b, a.run(n, 0)) // makes the garbage
		check(b, a.s.Close())
		opts.Compact.Off = off
		a.reopen(b, opts)
		b.StartTimer()
		check(b, a.run(n, 0))
		b.StopTimer()
		p99 = a.p99()
		b.ReportMetric(float64(a.s.Stats().Files), "files")
		check(b, a.s.Close())
		b.StartTimer()
	}
	b.ReportMetric(p99.Seconds()*1000, "p99-ms")
	return p99
}

// reopen opens the closed store again, and forgets what was measured.
func (a *aging) reopen(tb testing.TB, opts Options) {
	a.s, a.parts, a.peak = mustOpen(tb, a.dir, opts), [agingParts]agingPart{}, 0
}

// p99 is that of all puts.
func (a *aging) p99() time.Duration {
	var all latencies
	for i := range a.parts {
		all.merge(&a.parts[i].puts)
	}
	return all.quantile(0.99)
}

// report tells what came of a run, and of each tenth. p99-ms is the worst of the tenths'.
func (a *aging) report(b *testing.B) {
	var rates [agingParts]float64
	var lines strings.Builder // one Log, for a benchmark shows only a few
	var worst time.Duration
	for i := range a.parts {
		p := &a.parts[i]
		rates[i] = float64(p.puts.count()) / p.took.Seconds()
		p99 := p.puts.quantile(0.99)
		worst = max(worst, p99)
		fmt.Fprintf(&lines, "tenth %d: %.0f puts/s, p99 %v\n", i+1, rates[i], p99)
	}
	st := a.s.Stats()
	b.Logf("%s%d reads, %d puts refused for space, %+v", &lines, a.reads.Load(), a.refused.Load(), st)
	b.ReportMetric(rates[agingParts-1]/rates[0], "rate-last/first")
	b.ReportMetric(float64(a.peak)/float64(st.Live), "disk/live")
	b.ReportMetric(worst.Seconds()*1000, "p99-ms")
	b.ReportMetric(float64(a.refused.Load()), "refused")
}

// agingOptions make a smaller store's files as small a part of it as the default ones are of a million objects.
func agingOptions(n int) Options {
	return Options{FileSize: min(liveSize(n)/16, 64<<20)}
}

func liveSize(n int) int64 { return int64(n) * recordSize(kindPut, agingSize) }

func shortOr(short, full int) int {
	if testing.Short() {
		return short
	}
	return full
}

func fromEnv(b *testing.B, name string, otherwise int) int {
	n, err := strconv.Atoi(cmp.Or(os.Getenv(name), strconv.Itoa(otherwise)))
	check(b, err)
	return n
}
