package metabase

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/granary-store/granary/blobstor"
)

// dictionary knows the number of every container and what it holds, as the last commit left them.
type dictionary struct {
	mu  sync.RWMutex
	of  map[blobstor.ID]*named
	has map[container]*named
	at  int // the commit that left them

	doubtful atomic.Bool // a commit may or may not have changed the file; the next one reads it first
}

// get returns an entry and the commit that left it.
func (d *dictionary) get(id blobstor.ID) (n named, ok bool, at int) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if n := d.of[id]; n != nil {
		return *n, true, d.at
	}
	return named{}, false, d.at
}

// knows reports whether a container has this number.
func (d *dictionary) knows(c container) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.has[c] != nil
}

// publish takes over what a transaction changed. Whoever waits for the commit is woken after that.
func (d *dictionary) publish(t *txn, at int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = at
	for id, n := range t.dict {
		d.set(id, n)
	}
	for c, now := range t.counted {
		if n := d.has[c]; n != nil {
			n.has = *now
		}
	}
}

func (d *dictionary) set(id blobstor.ID, n named) {
	if n.gone {
		delete(d.of, id)
		delete(d.has, n.number)
		return
	}
	d.of[id], d.has[n.number] = &n, &n
}

func (d *dictionary) clear() {
	d.of, d.has, d.at = map[blobstor.ID]*named{}, map[container]*named{}, -1
}

// load reads the dictionary from the file.
func (d *dictionary) load(t *txn) error {
	var names []named
	err := t.scan(dict, nil, func(key, value []byte) (bool, error) {
		n, err := parseName(key, value)
		if err == nil {
			err = t.tell(&n)
		}
		names = append(names, n)
		return true, err
	})
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clear()
	d.at = t.seenCommit()
	for _, n := range names {
		d.set(n.id, n)
	}
	d.doubtful.Store(false)
	return nil
}

// scanNames returns the containers by number, as this transaction sees them: the dictionary in memory may be of another.
func (t *txn) scanNames() (map[container]named, error) {
	names := make(map[container]named)
	err := t.scan(dict, nil, func(key, value []byte) (bool, error) {
		n, err := t.name(key, value)
		names[n.number] = n
		return true, err
	})
	return names, err
}

// name reads an entry of the dictionary, and what the container holds from memory if that knows it.
func (t *txn) name(key, value []byte) (named, error) {
	n, err := parseName(key, value)
	if err != nil {
		return n, err
	}
	if known, ok := t.find(n.id); ok && known.number == n.number {
		n.has, n.vague = known.has, known.vague
		return n, nil
	}
	return n, t.tell(&n)
}

func parseName(key, value []byte) (n named, err error) {
	if len(key) != idSize || len(value) != prefix+1 || value[prefix] > 1 {
		return n, corrupt("dictionary")
	}
	return named{id: lastID(key), number: containerOf(value), marked: value[prefix] == 1}, nil
}

// tell fills in what a container holds. If the counters are damaged, anything may be there: that is no reason not to
// read the rest.
func (t *txn) tell(n *named) (err error) {
	n.has, err = t.readCounters(n.number)
	n.vague = errors.Is(err, blobstor.ErrCorrupt)
	if n.vague {
		n.has, err = unknown, nil
	}
	return err
}

// Settings that there is one of.
var (
	keyVersion = []byte("version")
	keyNext    = []byte("next")     // the number of the next container
	keyDropped = []byte("dropped/") // and a number: what is left of that container is to be removed
)

func (t *txn) planName(n named) {
	key := t.done(append(t.begin(), n.id[:]...))
	if n.gone {
		t.del(dict, key)
	} else {
		t.put(dict, key, func(b []byte) []byte {
			mark := byte(0)
			if n.marked {
				mark = 1
			}
			return append(n.number.append(b), mark)
		})
	}
	t.names = append(t.names, n)
}

// open returns a container, and gives it a number if it has none.
func (t *txn) open(id blobstor.ID) (named, error) {
	if n, ok := t.find(id); ok {
		return n, nil
	}
	v, err := t.get(settings, keyNext)
	if err != nil {
		return named{}, err
	}
	next := container(1)
	if len(v) == prefix {
		next = containerOf(v)
	}
	t.put(settings, keyNext, (next + 1).append)
	n := named{id: id, number: next}
	t.planName(n)
	return n, nil
}

// Containers returns the IDs of all containers that objects were recorded of and that were not dropped, in order.
// It is the caller's.
func (db *DB) Containers(ctx context.Context) (ids []blobstor.ID, err error) {
	err = db.view(ctx, "containers", blobstor.Address{}, func(t *txn) error {
		return t.scan(dict, nil, func(key, _ []byte) (bool, error) {
			ids = append(ids, lastID(key))
			return true, nil
		})
	})
	return ids, err
}

// Counters returns what a container holds; of one that is not known, nothing.
func (db *DB) Counters(ctx context.Context, id blobstor.ID) (c Counters, err error) {
	err = db.view(ctx, "counters", blobstor.Address{Container: id}, func(t *txn) (err error) {
		n, ok := t.find(id)
		if c = n.has; ok && n.vague {
			c, err = t.readCounters(n.number)
		}
		return err
	})
	return c, err
}
