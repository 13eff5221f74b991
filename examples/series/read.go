package main

import (
	"cmp"
	"context"
	"slices"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/tsz"
)

// line is a series as it was found in the store.
type line struct {
	points []tsz.Point
	mixed  uint64
	blocks int
	bytes  int
}

// find opens the store again and reads all series in it.
func find(ctx context.Context, dir string) (map[string]*line, error) {
	s, err := open(dir, false)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	names := make(map[blobstor.ID]string)
	blocks := make(map[string][][]byte)
	for _, m := range newRecorder(s).metrics {
		names[container(m.name)] = m.name
	}
	for info, err := range s.All(ctx, "") {
		if err != nil {
			return nil, err
		}
		name, ok := names[info.Address.Container]
		if !ok {
			continue
		}
		b, err := s.Get(ctx, info.Address, info.Location, nil)
		if err != nil {
			return nil, err
		}
		blocks[name] = append(blocks[name], b)
	}
	found := make(map[string]*line)
	for name, all := range blocks {
		if found[name], err = join(all); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// join puts the blocks of a series in order, by what their headers say, and reads them.
func join(blocks [][]byte) (*line, error) {
	first := make(map[*byte]int64)
	for _, b := range blocks {
		h, err := tsz.ParseHeader(b)
		if err != nil {
			return nil, err
		}
		first[&b[0]] = h.First
	}
	slices.SortFunc(blocks, func(a, b []byte) int { return cmp.Compare(first[&a[0]], first[&b[0]]) })
	series := slices.Concat(blocks...)
	l := &line{blocks: len(blocks), bytes: len(series)}
	for p, err := range tsz.Points(series) {
		if err != nil {
			return nil, err
		}
		l.points = append(l.points, p)
		l.mixed = mix(l.mixed, p.T, p.V)
	}
	return l, nil
}
