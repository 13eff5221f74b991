package main

import (
	"context"
	"sync/atomic"

	"github.com/granary-store/granary/blobstor"
)

// faultLimit is how many faults of its disk a shard may have before it is only read from.
const faultLimit = 3

// health counts the faults of a shard, which its storages and its metabase tell to their hooks: also those that nobody
// waits for, and each one once. So what a call returns is not counted.
type health struct {
	faults  atomic.Int64
	tooMany chan struct{} // closed when the limit is reached
	closing chan struct{}
	settled chan struct{} // closed when watch ends
	err     error         // of watch
}

func newHealth() health {
	return health{tooMany: make(chan struct{}), closing: make(chan struct{}), settled: make(chan struct{})}
}

// hooks are those of all that a shard opens.
func (h *health) hooks() blobstor.Hooks { return blobstor.Hooks{Fault: h.fault} }

// fault only counts: a hook may be called while a shard is being opened, or by what a switch waits for. It hears of
// nothing but faults: a refusal, such as not found, does not speak against the disk.
func (h *health) fault(string, error) {
	if h.faults.Add(1) == faultLimit {
		close(h.tooMany)
	}
}

// sick reports whether the shard is not to be written to any more.
func (h *health) sick() bool { return h.faults.Load() >= faultLimit }

// watch switches the shard once there are too many faults.
func (h *health) watch(switchOff func(context.Context) error) {
	defer close(h.settled)
	select {
	case <-h.tooMany:
		h.err = switchOff(context.Background())
	case <-h.closing:
	}
}

// unwatch ends watch and returns its error.
func (h *health) unwatch() error {
	close(h.closing)
	<-h.settled
	return h.err
}
