package tsz_test

import (
	"fmt"
	"log"

	"github.com/granary-store/granary/tsz"
)

// A series is written as it comes, and read while it is.
func Example() {
	e := tsz.NewEncoder(tsz.Milliseconds, 1_700_000_000_000, nil)
	for i := range int64(5) {
		if err := e.Append(1_700_000_000_000+15_000*i, float64(20+i)/10); err != nil {
			log.Fatal(err)
		}
	}
	var d tsz.Decoder
	for d.ResetSnapshot(e.Snapshot()); d.Next(); {
		fmt.Println(d.At())
	}
	fmt.Println(d.Err())
	// Output:
	// 1700000000000 2
	// 1700000015000 2.1
	// 1700000030000 2.2
	// 1700000045000 2.3
	// 1700000060000 2.4
	// <nil>
}

// What is complete is sealed. A reader passes by blocks that do not concern it.
func ExampleSeal() {
	var ts []int64
	var vs []float64
	for i := range int64(3000) {
		ts, vs = append(ts, 60*i), append(vs, float64(i*i%100)/10)
	}
	b, err := tsz.Seal(nil, tsz.Seconds, ts, vs)
	if err != nil {
		log.Fatal(err)
	}
	for at := b; len(at) > 0; {
		h, err := tsz.ParseHeader(at)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d points from %d, %v to %v, %d bytes\n", h.Count, h.First, h.Min, h.Max, h.Size)
		at = at[h.Size:]
	}
	var d tsz.Decoder
	d.Reset(b)
	if d.SeekTo(100_000) {
		fmt.Println(d.At())
	}
	// Output:
	// 1024 points from 0, 0 to 9.6, 965 bytes
	// 1024 points from 61440, 0 to 9.6, 965 bytes
	// 952 points from 122880, 0 to 9.6, 902 bytes
	// 100020 8.9
}

// A program that restarts goes on in the same stream.
func ExampleEncoder_Resume() {
	e := tsz.NewEncoder(tsz.Seconds, 0, nil)
	for i := range int64(3) {
		if err := e.Append(60*i, 1.5); err != nil {
			log.Fatal(err)
		}
	}
	stored := e.AppendBlock(nil)

	again := tsz.NewEncoder(tsz.Seconds, 0, nil)
	if err := again.Resume(stored); err != nil {
		log.Fatal(err)
	}
	fmt.Println(again.Len(), again.Append(120, 2.5), again.Append(180, 2.5))
	// Output:
	// 3 tsz: time of the last point <nil>
}
