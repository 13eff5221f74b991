package blobovnicza

import (
	"math/rand/v2"
	"testing"
)

// No key that was added is missed, few others pass, also where all keys have their low bits in common.
func TestBloom(t *testing.T) {
	const n = 20_000
	for _, low := range []uint64{1, 256, 1 << 16} {
		rng := rand.New(rand.NewPCG(1, low))
		key := func() uint64 { return rng.Uint64() / low * low }
		var b bloom
		var added []uint64
		if b.has(key()) {
			t.Error("the empty filter has a key")
		}
		for range n {
			k := key()
			added = append(added, k)
			if b.full() {
				b = b.grown()
				for _, old := range added[:len(added)-1] {
					b.add(old)
				}
			}
			b.add(k)
		}
		for _, k := range added {
			if !b.has(k) {
				t.Fatalf("%x is missed", k)
			}
		}
		passed := 0
		for range n {
			if b.has(key()) {
				passed++
			}
		}
		if passed > n/100 {
			t.Errorf("low %d: %d of %d others pass", low, passed, n)
		}
	}
}
