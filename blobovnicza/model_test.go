package blobovnicza

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/internal/crashtest"
	"github.com/granary-store/granary/internal/durable"
)

// model is what a store must look like.
type model struct {
	t     *testing.T
	rng   *rand.Rand
	sites *sites
	s     *Tree
	opts  Options
	blobs map[int]blobstor.Location // stored, and where a hint says
	hints map[int]blobstor.Location // old hints of deleted blobs
}

const modelAddresses = 40

// modelData is the one content that an address has.
func modelData(n int) []byte { return dataOf(n, n*n*97%3000) }

// Random operations, reopens, power losses and faults, compared with a map after every step.
func TestModel(t *testing.T) {
	seeds, steps := 12, 400
	if testing.Short() {
		seeds, steps = 3, 200
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			m := &model{t: t, rng: rand.New(rand.NewPCG(seed, 1)), sites: &sites{all: map[blobstor.Storage]*site{}},
				opts:  Options{Create: true, FileSize: 8 << 10, Compact: CompactOptions{Off: true}},
				blobs: map[int]blobstor.Location{}, hints: map[int]blobstor.Location{}}
			if seed%3 == 1 {
				m.opts.Width, m.opts.Depth = 3, 1
			}
			m.s = m.sites.open(t, t.TempDir(), m.opts)
			for range steps {
				m.step()
				if t.Failed() {
					return
				}
			}
			m.verify()
		})
	}
}

func (m *model) step() {
	n := m.rng.IntN(modelAddresses)
	switch k := m.rng.IntN(100); {
	case k < 40:
		m.put(n)
	case k < 60:
		m.remove(n)
	case k < 75:
		m.get(n)
	case k < 85:
		m.batch()
	case k < 90:
		m.verify()
	case k < 91:
		check(m.t, m.s.Compact(ctx))
	case k < 94:
		check(m.t, m.s.Close())
		m.s = m.sites.open(m.t, m.sites.of(m.s).dir, m.opts)
	case k < 97:
		dir := m.t.TempDir()
		check(m.t, m.sites.of(m.s).record.PowerLoss(dir))
		m.s.Close()
		m.s = m.sites.open(m.t, dir, m.opts)
	default:
		m.fault(n)
	}
}

func (m *model) put(n int) {
	at, err := m.s.Put(ctx, addrOf(n), modelData(n))
	check(m.t, err)
	m.blobs[n] = at
}

func (m *model) remove(n int) {
	at, stored := m.blobs[n]
	err := m.s.Delete(ctx, addrOf(n), at)
	if stored != (err == nil) || !stored && !errors.Is(err, blobstor.ErrNotFound) {
		m.t.Errorf("delete of %d, stored %v: %v", n, stored, err)
	}
	if stored {
		m.hints[n] = at
		delete(m.blobs, n)
	}
}

func (m *model) get(n int) {
	at, stored := m.blobs[n]
	for _, hint := range []blobstor.Location{at, "", m.hints[n], m.blobs[m.rng.IntN(modelAddresses)]} {
		got, err := m.s.Get(ctx, addrOf(n), hint, nil)
		if stored && (err != nil || !bytes.Equal(got, modelData(n))) || !stored && !errors.Is(err, blobstor.ErrNotFound) {
			m.t.Errorf("get of %d, stored %v: %d bytes, %v", n, stored, len(got), err)
		}
	}
}

func (m *model) batch() {
	items := make([]blobstor.Item, m.rng.IntN(20))
	remove := m.rng.IntN(2) == 0
	for i := range items {
		n := m.rng.IntN(modelAddresses) // some come twice
		items[i] = blobstor.Item{Address: addrOf(n), Data: modelData(n), Location: m.blobs[n]}
	}
	if !remove {
		check(m.t, m.s.PutBatch(ctx, items))
	} else if err := m.s.DeleteBatch(ctx, items); err != nil && !errors.Is(err, blobstor.ErrNotFound) {
		m.t.Error(err)
	}
	for _, item := range items {
		var n int
		fmt.Sscanf(string(bytes.TrimRight(item.Address.Object[:], "\x00")), "object %d", &n)
		if !remove {
			m.blobs[n] = item.Location
			continue
		}
		_, stored := m.blobs[n]
		if stored == errors.Is(item.Err, blobstor.ErrNotFound) {
			m.t.Errorf("batched delete of %d, stored %v: %v", n, stored, item.Err)
		}
		delete(m.blobs, n)
	}
}

// fault lets one operation fail. The put that meets it is not there.
func (m *model) fault(n int) {
	if _, stored := m.blobs[n]; stored {
		return
	}
	check(m.t, m.s.upkeep(ctx)) // or it would meet the fault
	faults := m.sites.of(m.s).faults
	op := []durable.Op{durable.OpWrite, durable.OpSync}[m.rng.IntN(2)]
	faults.Add(crashtest.Fault{Op: op, Path: treeDir, Err: syscall.EIO})
	_, err := m.s.Put(ctx, addrOf(n), modelData(n))
	faults.Clear()
	if err == nil {
		m.t.Errorf("put of %d met no fault", n)
	}
	m.get(n)
}

// verify compares the whole store with the model, and the counters with a recount.
func (m *model) verify() {
	seen := map[blobstor.Address]blobstor.Info{}
	var live int64
	last := blobstor.Location("")
	for info, err := range m.s.All(ctx, "") {
		check(m.t, err)
		if _, twice := seen[info.Address]; twice || info.Location <= last {
			m.t.Errorf("All yields %v twice or out of order", info.Address)
		}
		last, seen[info.Address] = info.Location, info
		live += info.Stored
	}
	for n := range modelAddresses {
		info, found := seen[addrOf(n)]
		if _, stored := m.blobs[n]; stored != found || found && info.Size != int64(len(modelData(n))) {
			m.t.Errorf("blob %d: stored %v, found %v, %+v", n, stored, found, info)
		}
	}
	wantClean(m.t, m.s)
	if st := m.s.Stats(); st.Healed != 0 || st.Flawed != 0 || st.Objects != int64(len(m.blobs)) || st.Live != live || st.Lost != 0 || st.Corrupt != 0 {
		m.t.Errorf("stats %+v, want %d objects of %d bytes", st, len(m.blobs), live)
	}
}
