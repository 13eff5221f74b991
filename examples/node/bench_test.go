package main

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// BenchmarkNodePut puts objects of 4 KiB durably on one shard: look-up, blob and record, under the lock of the address.
func BenchmarkNodePut(b *testing.B) {
	for _, threads := range []int{1, 20, 100} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			n := newNode(b, 1)
			h := named("cat.jpg")
			h.Attrs["ContentType"] = "image/jpeg"
			var next atomic.Int64
			var wg sync.WaitGroup
			b.ReportAllocs()
			b.SetBytes(4 << 10)
			b.ResetTimer()
			for range threads {
				wg.Go(func() {
					payload := make([]byte, 4<<10)
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						binary.BigEndian.PutUint64(payload, uint64(i))
						if _, err := n.Put(b.Context(), h, payload); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "objects/s")
		})
	}
}
