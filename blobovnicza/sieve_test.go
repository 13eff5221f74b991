package blobovnicza

import (
	"bytes"
	"testing"
)

// The sieve stops six of seven keys that are not there, and none that is.
func TestSieve(t *testing.T) {
	rows := makeRows(50_000)
	const seed = 7
	s := sieveOf(rows, seed)
	for i := range rows {
		if !s.has(mix(rows[i].key + seed)) {
			t.Fatalf("row %d is not there", i)
		}
	}
	passed := 0
	for key := range uint64(50_000) {
		if s.has(mix(key*0x9e3779b97f4a7c15 + seed)) {
			passed++
		}
	}
	if passed > 50_000/5 {
		t.Errorf("%d of 50,000 pass", passed)
	}
}

// A look-up over many files asks the filters as each table does.
func TestBelowIsHas(t *testing.T) {
	v := &version{}
	var tables []*table
	for n := range 20 {
		b := indexOf(t, makeRows(10*n + 1)[n:])
		tab, err := openTable(bytes.NewReader(b), int64(len(b)), tableSeed)
		check(t, err)
		tables = append(tables, tab)
		v.probes, v.sieves = append(v.probes, probeOf(tab)), append(v.sieves, tab.sieve)
	}
	for n := range 20_000 {
		key := uint64(n) * 0x9e3779b97f4a7c15
		if n < 200 {
			key = makeRows(200)[n].key
		}
		for i, tab := range tables {
			if v.mayHold(i, key) != tab.has(key) {
				t.Fatalf("table %d and the look-up differ", i)
			}
		}
	}
}
