package neofs

import (
	"bytes"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

// BenchmarkParse reads the header of a small object, and of a part with its parent's.
func BenchmarkParse(b *testing.B) {
	plain := header(0, 1<<10).attr("FileName", "cat.jpg").attr("Timestamp", "1700000000").attr(Expiration, "5000")
	part := header(0, 1<<10).msg(11, msg(nil).id(1, id(9)).msg(4, plain).id(7, id(8)))
	for name, h := range map[string]msg{"kind=plain": plain, "kind=part": part} {
		b.Run(name, func(b *testing.B) {
			o := object(10, h, 1<<10)
			r := bytes.NewReader(o)
			b.ReportAllocs()
			for b.Loop() {
				_, err := Parse(blobstor.Info{Size: int64(len(o))}, r)
				must(b, err)
			}
		})
	}
}
