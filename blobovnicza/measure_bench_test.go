//go:build unix

package blobovnicza

import (
	"errors"
	"io/fs"
	"math/bits"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// What the benchmarks of aging stores measure with. The tests:
//
//	go test -run 'TestLatencies|TestAging' ./blobovnicza

// diskUse is what the file system has allocated for all files in dir. Those that vanish meanwhile do not count.
func diskUse(dir string) (sum int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				sum += int64(info.Sys().(*syscall.Stat_t).Blocks) * 512
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return sum, err
}

// latencies is a histogram whose buckets are a 16th apart, so that a long run keeps no list.
type latencies [64 * 16]int64

func (l *latencies) add(d time.Duration) {
	n := uint64(d) | 16
	shift := bits.Len64(n) - 5
	l[shift*16+int(n>>shift)-16]++
}

func (l *latencies) merge(other *latencies) {
	for i, n := range other {
		l[i] += n
	}
}

// quantile returns the upper end of the bucket in which the quantile lies.
func (l *latencies) quantile(q float64) time.Duration {
	all := float64(l.count())
	var sum int64
	for i, n := range l {
		if sum += n; sum > 0 && float64(sum) >= q*all {
			return time.Duration(i%16+17) << (i / 16)
		}
	}
	return 0
}

func (l *latencies) count() (all int64) {
	for _, n := range l {
		all += n
	}
	return all
}

func TestLatencies(t *testing.T) {
	for _, unit := range []time.Duration{1, time.Microsecond, time.Millisecond, time.Minute} {
		var l latencies
		for n := range time.Duration(1000) {
			l.add(1000*unit + n*unit)
		}
		for _, q := range []float64{0.5, 0.99, 1} {
			want := 1000*unit + time.Duration(q*1000)*unit
			if got := l.quantile(q); got < want-unit || got > want+want/16+unit {
				t.Errorf("quantile %v of %v to %v is %v", q, 1000*unit, 1999*unit, got)
			}
		}
	}
}
