package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/metabase"
)

// story is what happens to three objects. The first lies on disk 0, the second on disk 1, the third has its parts on
// both.
type story struct {
	node           *Node
	cat, dog, bird Address
}

var container = ID{1}

// named returns the header of an object with a name.
func named(name string) *Header {
	return &Header{Container: container, Attrs: map[string]string{"FileName": name}}
}

func (s *story) chapters(ctx context.Context, chapters ...func(context.Context) error) error {
	for _, chapter := range chapters {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) store(ctx context.Context) (err error) {
	if s.cat, err = s.node.Put(ctx, named("cat.txt"), []byte("purr")); err != nil {
		return err
	}
	h := named("dog.mp4")
	h.Expires = 10
	if s.dog, err = s.node.PutStream(ctx, h, strings.NewReader(strings.Repeat("woof ", 100_000))); err != nil {
		return err
	}
	s.bird = Address{container, ID{7}}
	for i, payload := range []string{"chi", "rp!", "\x11\x18\x48"} { // the last one is the others' parity
		p := Part{Of: s.bird.Object, Index: i, Size: 6, Attrs: map[string]string{"FileName": "bird.wav"}}
		if _, err := s.node.PutPart(ctx, container, p, []byte(payload)); err != nil {
			return err
		}
	}
	return s.search(ctx)
}

// search prints what has a name.
func (s *story) search(ctx context.Context) error {
	all, err := s.node.SearchAll(ctx, metabase.Query{
		Container: blobstor.ID(container), Attrs: []string{"FileName"},
		Filters: []metabase.Filter{{Key: "FileName", Op: metabase.Prefix}},
	})
	for _, m := range all {
		fmt.Printf("found %s, %d bytes\n", m.Values[0], m.Size)
	}
	return err
}

func (s *story) read(ctx context.Context) error {
	h, size, err := s.node.Head(ctx, s.dog)
	if err != nil {
		return err
	}
	part, err := s.node.ResolvePart(ctx, s.bird, 1)
	if err != nil {
		return err
	}
	for _, r := range []struct {
		of     Address
		off, n int64
	}{{s.cat, 0, 4}, {s.dog, size - 5, 4}, {part, 0, 3}} {
		data, err := s.node.Range(ctx, r.of, r.off, r.n)
		if err != nil {
			return err
		}
		fmt.Printf("%q ", data)
	}
	fmt.Printf("were read; %s expires after epoch %d\n", h.Attrs["FileName"], h.Expires)
	return nil
}
