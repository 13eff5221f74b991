package crashtest

import (
	"strings"
	"sync"

	"github.com/granary-store/granary/internal/durable"
)

// Fault says which operation fails, and how.
type Fault struct {
	Op      durable.Op
	Path    string                                // only operations whose path contains this; "" for all
	Match   func(op durable.Op, path string) bool // if set, chooses the operations instead of Op and Path
	N       int                                   // how many operations succeed before the one that fails
	Forever bool                                  // all later ones fail too
	Err     error
}

func (f *Fault) matches(op durable.Op, path string) bool {
	if f.Match != nil {
		return f.Match(op, path)
	}
	return f.Op == op && strings.Contains(path, f.Path)
}

// Faults fails chosen operations, and passes the others on to Next.
type Faults struct {
	Next durable.Tap // may be nil

	mu     sync.Mutex
	faults []*Fault
	hits   int
}

// Add arms a fault. Faults count independently of each other.
func (f *Faults) Add(fault Fault) {
	f.mu.Lock()
	f.faults = append(f.faults, &fault)
	f.mu.Unlock()
}

// Hits returns how many operations were failed so far.
func (f *Faults) Hits() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hits
}

// Clear disarms all faults.
func (f *Faults) Clear() {
	f.mu.Lock()
	f.faults = nil
	f.mu.Unlock()
}

// Before fails the operation if it is an armed fault's turn.
func (f *Faults) Before(op durable.Op, path string, file *durable.File) error {
	if err := f.turn(op, path); err != nil {
		return err
	}
	if f.Next != nil {
		return f.Next.Before(op, path, file)
	}
	return nil
}

// After passes on.
func (f *Faults) After(op durable.Op, path string, file *durable.File) {
	if f.Next != nil {
		f.Next.After(op, path, file)
	}
}

func (f *Faults) turn(op durable.Op, path string) (err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.faults {
		if !a.matches(op, path) {
			continue
		}
		if a.N == 0 || a.N < 0 && a.Forever {
			err = a.Err
		}
		a.N--
	}
	if err != nil {
		f.hits++
	}
	return err
}
