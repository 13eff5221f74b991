package metabase

import (
	"slices"

	"github.com/granary-store/granary/blobstor"
)

// parentOf returns what the object is a part of, by its own record or by that of another one of its chain.
func (t *txn) parentOf(c container, r *Record) (parent blobstor.ID, err error) {
	if !r.Parent.IsZero() || r.Chain == "" {
		return r.Parent, nil
	}
	err = t.scan(rels, appendChain(nil, c, r.Chain), func(_, value []byte) (bool, error) {
		if len(value) == idSize { // this one names it
			copy(parent[:], value)
		}
		return parent.IsZero(), nil
	})
	return parent, err
}

// relation returns the first object that has this relation to another one and counts.
func (t *txn) relation(c container, rel byte, to blobstor.ID, counts func(*packed, Mark) bool) (by blobstor.ID, found bool, err error) {
	var buf [prefix + 1 + 32]byte
	err = t.scan(rels, appendRel(buf[:0], c, rel, &to), func(key, _ []byte) (bool, error) {
		id := lastID(key)
		p, stored, err := t.record(c, blobstor.Address{Object: id})
		if err != nil {
			return false, err
		}
		if !stored {
			return false, corrupt("%v has a relation and no record", id)
		}
		m, err := t.mark(c, id)
		if err != nil {
			return false, err
		}
		if counts(&p, m) {
			by, found = id, true
		}
		return !found, nil
	})
	return by, found, err
}

// parts calls yield with the ID of every object that is a part of another one, itself or by its chain.
func (t *txn) parts(c container, of blobstor.ID, yield func(blobstor.ID) (bool, error)) error {
	var chains []string // which were looked at
	return t.scan(rels, appendRel(nil, c, relPart, &of), func(key, chain []byte) (bool, error) {
		more, err := yield(lastID(key))
		if len(chain) == 0 || slices.Contains(chains, string(chain)) || !more || err != nil {
			return more, err
		}
		// This part names the parent of its whole chain.
		chains = append(chains, string(chain))
		err = t.chain(c, string(chain), func(id blobstor.ID, names bool) (_ bool, err error) {
			if !names { // those that do are yielded above
				more, err = yield(id)
			}
			return more, err
		})
		return more, err
	})
}

// chain calls yield with the ID of every object of a chain, and whether it names a parent.
func (t *txn) chain(c container, chain string, yield func(id blobstor.ID, names bool) (bool, error)) error {
	return t.scan(rels, appendChain(nil, c, chain), func(key, value []byte) (bool, error) {
		return yield(lastID(key), len(value) == idSize)
	})
}

// hasParts reports whether there are parts of an object.
func (t *txn) hasParts(c container, of blobstor.ID) (bool, error) {
	return t.hasPartsBut(c, of, blobstor.ID{})
}

// hasPartsBut likewise, without one that may be going. Those that are parts only by their chain do not matter: they are
// none without another one that names the parent.
func (t *txn) hasPartsBut(c container, of, but blobstor.ID) (has bool, err error) {
	err = t.scan(rels, appendRel(nil, c, relPart, &of), func(key, _ []byte) (bool, error) {
		has = lastID(key) != but
		return !has, nil
	})
	return has, err
}

// above returns the record of what an object is a part of: as it is stored, or as it comes with the entry that is put,
// which does not see its own records otherwise.
func (t *txn) above(c container, addr blobstor.Address) (p packed, stored bool, err error) {
	if p, stored, err = t.record(c, addr); err != nil || stored {
		return p, stored, err
	}
	for i := range t.entry {
		if t.entry[i].Address.Object == addr.Object {
			p.head = t.entry[i]
		}
	}
	p.head.Address = addr
	return p, false, nil
}
