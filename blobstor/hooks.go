package blobstor

import "time"

// Hooks are called by storages on events worth counting. Nil fields are skipped. They are called without locks
// held, after the waiting callers were woken, and must not call back into Close.
type Hooks struct {
	// Fault reports an error that speaks against disk or files ([IsFault]), also from background work, for which it
	// may be called in a goroutine of its own.
	Fault func(op string, err error)

	// Corrupt reports a blob that cannot be returned: time to fetch a replica and put it again.
	Corrupt func(info Info, err error)

	// Commit reports a group commit: its operations, the bytes written, how long the oldest operation waited
	// for its turn, and the time of the sync.
	Commit func(ops int, bytes int64, wait, sync time.Duration)
}
