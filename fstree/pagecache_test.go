package fstree

import (
	"fmt"
	"math"
	"testing"
)

// notes are the hints that a pager was given.
type notes struct{ ahead, back, drops []extent }

type extent struct{ off, n int64 }

func (n *notes) ReadAhead(off, size int64) { n.ahead = append(n.ahead, extent{off, size}) }
func (n *notes) WriteBack(off, size int64) { n.back = append(n.back, extent{off, size}) }
func (n *notes) DropRange(off, size int64) { n.drops = append(n.drops, extent{off, size}) }

// end checks that extents follow on each other from start on, and returns where they end.
func end(t *testing.T, what string, all []extent, start int64) int64 {
	t.Helper()
	for _, e := range all {
		if e.off != start || e.n <= 0 {
			t.Fatalf("%s: %v does not go on at %d", what, e, start)
		}
		start += e.n
	}
	return start
}

// trailSizes are sizes of blobs around the limits; the largest is huge, if the system says what that is.
func trailSizes() []int64 {
	sizes := []int64{0, bufferSize, bufferSize + 1, hintSize, hintSize + 1, 10*hintSize - 5}
	if huge := hugeSize(); huge < math.MaxInt64 {
		sizes = append(sizes, huge, huge+hintSize)
	}
	return sizes
}

func TestTrailOfReads(t *testing.T) {
	for _, size := range trailSizes() {
		for _, start := range []int64{0, min(size, blockSize+3)} {
			t.Run(fmt.Sprintf("size=%d/start=%d", size, start), func(t *testing.T) {
				var n notes
				trail := trail{f: &n, told: start, dropped: start}
				off := start
				for ; off < size; off += bufferSize {
					trail.reading(off, size)
					ahead := end(t, "read ahead", n.ahead, start)
					if size > bufferSize && ahead < min(size, off+hintSize/2) || ahead > off+2*hintSize {
						t.Fatalf("at %d it reads ahead to %d", off, ahead)
					}
					if dropped := end(t, "dropped", n.drops, start); dropped > off || size > hugeSize() && dropped <= off-hintSize {
						t.Fatalf("at %d all before %d is dropped", off, dropped)
					}
				}
				if got := end(t, "read ahead", n.ahead, start); got != max(start, size) && size > bufferSize {
					t.Fatalf("it reads ahead to %d", got)
				}
				if size <= hugeSize() && len(n.drops) > 0 || len(n.back) > 0 {
					t.Fatalf("wrong hints: %+v", n)
				}
			})
		}
	}
}

func TestTrailOfWrites(t *testing.T) {
	for _, size := range trailSizes() {
		t.Run(fmt.Sprintf("size=%d", size), func(t *testing.T) {
			var n notes
			trail := trail{f: &n}
			for off := int64(0); off < size; {
				off = min(size, off+bufferSize)
				trail.written(off)
				if back := end(t, "written back", n.back, 0); back > off || back <= off-hintSize {
					t.Fatalf("at %d it writes back to %d", off, back)
				}
				dropped := end(t, "dropped", n.drops, 0)
				if dropped > max(0, off-dropLag) || off > hugeSize()+hintSize && dropped <= off-dropLag-2*hintSize {
					t.Fatalf("at %d all before %d is dropped", off, dropped)
				}
			}
			n.drops = nil
			trail.synced(size)
			if huge := size > hugeSize(); huge != (len(n.drops) == 1) || huge && n.drops[0] != (extent{}) || len(n.ahead) > 0 {
				t.Fatalf("wrong hints: %+v", n)
			}
		})
	}
}
