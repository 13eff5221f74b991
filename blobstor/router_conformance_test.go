package blobstor_test

import (
	"slices"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/blobstor/storagetest"
)

// memories is a router over memory storages that lets the harness reach them.
type memories struct {
	*blobstor.Router
	routes []blobstor.Route
	hide   bool // the routes' optional interfaces
}

func newMemories(tb testing.TB, routes []blobstor.Route, hide bool) *memories {
	tb.Helper()
	wired := slices.Clone(routes)
	for i := range wired {
		if hide {
			wired[i].Storage = storagetest.Hide(wired[i].Storage)
		}
	}
	r, err := blobstor.New(wired...)
	if err != nil {
		tb.Fatal(err)
	}
	return &memories{r, routes, hide}
}

func (m *memories) each(do func(*storagetest.Memory)) {
	for _, rt := range m.routes {
		do(rt.Storage.(*storagetest.Memory))
	}
}

func (m *memories) all(set func(*storagetest.Memory) func()) (reset func()) {
	var resets []func()
	m.each(func(mem *storagetest.Memory) { resets = append(resets, set(mem)) })
	return func() {
		for _, reset := range resets {
			reset()
		}
	}
}

func (m *memories) reopen(tb testing.TB) *memories {
	m.Close()
	routes := slices.Clone(m.routes)
	for i := range routes {
		routes[i].Storage = routes[i].Storage.(*storagetest.Memory).Reopen()
	}
	return newMemories(tb, routes, m.hide)
}

// harness returns the harness of a router over the routes that make makes.
func harness(limit int64, hide bool, make func() []blobstor.Route) storagetest.Harness {
	reopen := func(tb testing.TB, s blobstor.Storage) blobstor.Storage { return s.(*memories).reopen(tb) }
	return storagetest.Harness{
		Limit:     limit,
		New:       func(tb testing.TB) blobstor.Storage { return newMemories(tb, make(), hide) },
		Reopen:    reopen,
		PowerLoss: reopen,
		Damage: func(_ testing.TB, s blobstor.Storage, addr blobstor.Address) {
			s.(*memories).each(func(m *storagetest.Memory) { m.Damage(addr) })
		},
		Full: func(_ testing.TB, s blobstor.Storage) func() {
			return s.(*memories).all((*storagetest.Memory).Full)
		},
		FailSync: func(_ testing.TB, s blobstor.Storage) func() {
			return s.(*memories).all((*storagetest.Memory).FailSync)
		},
		ReadOnly: func(_ testing.TB, s blobstor.Storage) blobstor.Storage { return blobstor.ReadOnly(s) },
	}
}

func TestRouterConformance(t *testing.T) {
	mem := storagetest.NewMemory
	shapes := []struct {
		name  string
		limit int64
		hide  bool
		make  func() []blobstor.Route
	}{
		{"one route", 0, false, func() []blobstor.Route { return []blobstor.Route{{Name: "a", Storage: mem(0)}} }},
		{"small and large", 0, false, func() []blobstor.Route {
			return []blobstor.Route{{Name: "small", MaxSize: 1000, Storage: mem(1000)}, {Name: "large", Storage: mem(0)}}
		}},
		{"limits of the storages", 64 << 10, false, func() []blobstor.Route {
			return []blobstor.Route{{Name: "b", Storage: mem(500)}, {Name: "a", Storage: mem(64 << 10)}}
		}},
		{"limit of the route", 3000, false, func() []blobstor.Route {
			return []blobstor.Route{{Name: "z", MaxSize: 100, Storage: mem(0)}, {Name: "y", MaxSize: 3000, Storage: mem(0)}}
		}},
		{"the first is full", 0, false, func() []blobstor.Route {
			full := mem(0)
			full.Full()
			return []blobstor.Route{{Name: "full", MaxSize: 5000, Storage: full}, {Name: "next", Storage: mem(0)}}
		}},
		{"draining", 0, false, func() []blobstor.Route {
			return []blobstor.Route{
				{Name: "old", MaxSize: 5000, Storage: mem(0), Drain: true},
				{Name: "small", MaxSize: 2000, Storage: mem(0)}, {Name: "large", Storage: mem(0)},
			}
		}},
		{"hidden interfaces", 0, true, func() []blobstor.Route {
			return []blobstor.Route{{Name: "small", MaxSize: 1000, Storage: mem(1000)}, {Name: "large", Storage: mem(0)}}
		}},
	}
	for _, shape := range shapes {
		t.Run(shape.name, func(t *testing.T) { storagetest.Test(t, harness(shape.limit, shape.hide, shape.make)) })
	}
}
