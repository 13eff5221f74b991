package pilorama

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/granary-store/granary/blobstor"
)

// Check verifies the whole database: the pages of the file, every checksum, that every tree is what its log makes of
// the tree with which the log begins, and that no key belongs to nothing. It returns all that it found, each error
// matching [blobstor.ErrCorrupt], and stops when ctx ends. It takes memory for each node that has or had children, and
// holds a read transaction for each tree, so the file may grow when it runs beside writes.
func (db *DB) Check(ctx context.Context) error {
	if err := db.enter(); err != nil {
		return wrap("check", Tree{}, err)
	}
	errs := []error{db.file.Check(ctx)}
	db.leave()
	var trees []Tree
	errs = append(errs, db.read(ctx, func(t *txn) (err error) {
		if trees, err = t.trees(nil); err != nil {
			return err
		}
		return t.checkStrays()
	}))
	for _, tree := range trees {
		errs = append(errs, db.checkTree(ctx, tree))
	}
	return db.told("check", Tree{}, errors.Join(append(errs, ctx.Err())...))
}

// audit is what Check knows of a tree.
type audit struct {
	*branch
	ctx      context.Context
	at       map[NodeID]NodeID // where nodes with children are, as far as the log was followed
	done     int               // operations that put the nodes where they are and were
	children int
	redos    int
	errs     []error
}

// mostErrors is how many errors are kept of a tree; damage comes in thousands.
const mostErrors = 100

func (a *audit) bad(format string, args ...any) {
	if len(a.errs) < mostErrors {
		a.errs = append(a.errs, corrupt("tree %v: %s", a.tree, fmt.Sprintf(format, args...)))
	}
}

func (db *DB) checkTree(ctx context.Context, tree Tree) error {
	var a audit
	err := db.read(ctx, func(t *txn) (err error) {
		a = audit{ctx: ctx, at: make(map[NodeID]NodeID)}
		if a.branch, err = t.branch(tree); err != nil || a.n == 0 {
			return err // it was dropped meanwhile
		}
		a.run()
		return nil
	})
	return errors.Join(append(a.errs, err)...)
}

// run verifies a tree. What ctx cut short tells nothing, so it is compared with nothing.
func (a *audit) run() {
	a.each(nodes, func(key, value []byte) error { return a.node(NodeID(timeOf(key)), value) })
	entries, done := 0, 0
	a.each(logs, func(key, value []byte) error {
		e, err := parseEntry(timeOf(key), value)
		if err != nil || e.time < a.height {
			return err // a truncation was interrupted
		}
		entries++
		if e.done {
			done++
		}
		return a.entry(&e)
	})
	found := 0
	a.each(children, func([]byte, []byte) error { found++; return nil })
	a.each(parents, func([]byte, []byte) error { return nil })
	redone := 0
	a.each(redos, func(key, _ []byte) error {
		if timeOf(key) >= a.height {
			redone++
		}
		return nil
	})
	if a.ctx.Err() != nil {
		return
	}
	if done != a.done {
		a.bad("%d of %d operations in the log changed something, the nodes tell of %d", done, entries, a.done)
	}
	if redone != a.redos {
		a.bad("%d entries of operations on parents, the log has %d", redone, a.redos)
	}
	if found != a.children {
		a.bad("%d entries of children, %d nodes", found, a.children)
	}
}

// each calls do with every entry of a class; what is damaged is reported and passed over.
func (a *audit) each(class byte, do func(key, value []byte) error) {
	prefix := a.n.key(nil, class)
	c := a.t.bucket().Cursor()
	for k, v := c.Seek(prefix); bytes.HasPrefix(k, prefix) && a.ctx.Err() == nil; k, v = c.Next() {
		value, err := unseal(k, v)
		if short := len(k) < len(prefix)+wordSize; err == nil && short {
			err = corrupt("a short key")
		}
		if err == nil {
			err = do(k, value)
		}
		if err != nil {
			a.bad("%s %x: %v", classNames[class], k, err)
		}
	}
}

// node verifies a record: the operations that put the node where it is, one before the other, and its entry among the
// children. Then the log has an operation that is not one of these only if that changed nothing.
func (a *audit) node(id NodeID, value []byte) error {
	r, err := parseRecord(value)
	if err != nil {
		return err
	}
	a.children++
	if in, err := a.t.has(a.branch.n.childKey(nil, id, &r)); err != nil || !in {
		return errors.Join(err, corrupt("no entry among the children of %d", r.parent))
	}
	if err := a.named(r.parent); err != nil {
		return err
	}
	at, in := r.place, true
	first := at.time
	for at.time >= a.height {
		e, err := a.mustEntry(at.time)
		if err != nil {
			return err
		}
		if !e.done || e.child != id || e.parent != at.parent || !bytes.Equal(e.meta, at.meta) {
			return corrupt("operation %d did not put it there", at.time)
		}
		a.done++
		if first = at.time; !e.had {
			in = false
			break
		}
		at = e.before
	}
	if !in && r.birth != first || in && (r.birth > at.time || r.birth >= a.height) {
		return corrupt("born at %d, after operation %d", r.birth, first)
	}
	is, err := a.isParent(id)
	if is && in {
		a.at[id] = at.parent
	}
	return err
}

// named verifies that a node is known as a parent.
func (a *audit) named(parent NodeID) error {
	is, err := a.isParent(parent)
	if err == nil && !is {
		err = corrupt("parent %d is not known as one", parent)
	}
	return err
}

// entry follows an operation, and verifies that it changed something unless that had been a cycle.
func (a *audit) entry(e *entry) error {
	if err := a.named(e.parent); err != nil {
		return err
	}
	is, err := a.isParent(e.child)
	if err != nil {
		return err
	}
	if is {
		a.redos++
		if in, err := a.t.has(a.branch.n.wordKey(nil, redos, e.time)); err != nil || !in {
			return errors.Join(err, corrupt("operation %d is not known to be on a parent", e.time))
		}
	}
	cycle := e.child == e.parent
	for id, steps := e.parent, 0; is && !cycle && id != Root && id != Trash; steps++ {
		at, in := a.at[id]
		if !in {
			break
		}
		if id = at; steps > len(a.at) {
			return corrupt("a cycle above node %d", e.parent)
		}
		cycle = id == e.child
	}
	if e.done == cycle {
		return corrupt("operation %d: done is %v", e.time, e.done)
	}
	if e.done && is {
		a.at[e.child] = e.parent
	}
	return nil
}

// checkStrays looks for keys of trees that nobody knows, and for keys of no class.
func (t *txn) checkStrays() error {
	known := make(map[number]bool)
	dropped := append([]byte{settings}, keyDropped...)
	for _, of := range [][]byte{{dict}, {settings}} {
		err := t.scan(of, of, func(key, value []byte) (bool, error) {
			if of[0] == settings {
				if value = bytes.TrimPrefix(key, dropped); len(value) == len(key) {
					return true, nil
				}
			}
			if len(value) != numberSize || known[numberOf(value)] {
				return false, corrupt("number under %x", key)
			}
			known[numberOf(value)] = true
			return true, nil
		})
		if err != nil {
			return err
		}
	}
	var errs []error
	c := t.bucket().Cursor()
	for k, _ := c.Seek([]byte{dict + 1}); k != nil && len(errs) < mostErrors; {
		if k[0] == settings {
			k, _ = c.Seek([]byte{settings + 1})
			continue
		}
		if len(k) < 1+numberSize || k[0] > settings {
			errs = append(errs, corrupt("key %x", k))
			k, _ = c.Next()
			continue
		}
		if n := numberOf(k[1:]); !known[n] {
			errs = append(errs, corrupt("%s of tree %d, which nobody knows", classNames[k[0]], n))
		}
		next := following(k[:1+numberSize])
		if k, _ = c.Seek(next); k != nil && bytes.Compare(k, next) < 0 {
			errs = append(errs, fmt.Errorf("%w: key %x is out of order", blobstor.ErrCorrupt, k))
			break
		}
	}
	return errors.Join(errs...)
}
