package metabase

import (
	"fmt"

	"github.com/granary-store/granary/blobstor"
)

// candidate is the verdict about an object that is put, as it would be.
type candidate struct {
	verdict
	again  bool  // it is stored as it shall be
	above  State // the fate of what it is a part of
	buried bool  // whatever holds it
}

// judgeNew decides about an object that is put. What its state does not tell, because a hold or its container's mark
// comes before, is looked up: marks must be right when those are gone.
func (t *txn) judgeNew(n named, c *candidate) error {
	if err := t.judgeRecord(n, &c.verdict, deepest); err != nil || !c.held && c.state <= Available {
		return err
	}
	_, buried, err := t.buriedBy(n.number, c.head.Address.Object)
	if err == nil {
		c.buried = buried
		c.above, err = t.fate(n.number, &c.head)
	}
	return err
}

// refuse returns why the object must not be recorded.
func (t *txn) refuse(n named, r *Record, c *candidate) error {
	switch {
	case c.state == ContainerGone:
		return ErrContainer
	case c.state == Buried:
		return ErrBuried
	case c.held:
	case c.above == Marked:
		return ErrGarbage
	case r.Expires != 0 && r.Expires < t.epoch:
		return ErrExpired
	}
	if r.Target.IsZero() || c.again && c.mark != Garbage {
		return nil
	}
	target, err := t.judge(n, blobstor.Address{Container: r.Address.Container, Object: r.Target})
	switch {
	case err != nil:
		return err
	case target.stored && (target.head.Kind == Tombstone || target.head.Kind == Lock):
		return fmt.Errorf("%w: it is a %v", ErrTarget, target.head.Kind)
	case r.Kind == Lock && target.stored && target.head.Kind != Regular:
		return fmt.Errorf("%w: it is a %v", ErrTarget, target.head.Kind)
	case r.Kind == Tombstone && target.held:
		return ErrHeld
	case r.Kind == Lock && (target.state == Buried || target.state == Marked):
		return target.state.Err()
	}
	return nil
}
