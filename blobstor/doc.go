// Package blobstor is the contract between a program and the storages that keep its blobs.
//
// It plays the part that io/fs plays for files: identity ([ID], [Address]), the interfaces ([Storage],
// [Streamer] and the optional ones), the errors, and functions that work over any storage. Storages import
// this package; it imports none of them. The program wires storages into a [Router] by size.
//
// # Laws
//
// Every [Storage], the router and every decorator obey these laws. Package storagetest checks each of them by
// name, and can be run on a storage of your own.
//
//  1. Durable. When Put, Commit, Delete or an item of a batch reports nil, it holds after power loss, unless
//     the storage was opened without syncs. Data first, then name, then acknowledge: nothing is visible
//     under its name before it is whole.
//  2. Immutable. An address names one content for ever, also across delete and re-put; any verified copy of it
//     may be returned. Put of a stored address changes nothing: it reads the stored copy once and returns nil
//     only when that copy and its name are durable; a damaged copy is healed.
//  3. Location is a hint. An empty, stale, foreign or garbage location costs time, never correctness. Only
//     compaction and healing change one; Stat returns the current one. A hint never brings back a deleted blob.
//     Locations sort in the order of All.
//  4. NotFound is a fact. [ErrNotFound] is returned only when every place was looked at. If one could not be,
//     the error is that one's. While addresses may have been lost to damage, misses are [ErrCorrupt];
//     Delete then still records the removal and Put the blob, and both return nil.
//  5. Integrity. What Get, a Reader or a range returns was checksum-verified. Damage is ErrCorrupt for the
//     damaged blob; all else is served, and iteration goes on.
//  6. Ranges. ReadRange fills its buffer as far as the blob goes and returns the blob's size; an offset behind
//     the end is [ErrOutOfRange]. [GetRange] is strict: exactly the bytes asked for, or ErrOutOfRange.
//  7. Iteration. All may be left early and may run beside every other call. It yields every blob that was
//     there throughout, once per run and storage, and holds no lock across yield. An error that carries an
//     address or a location concerns one blob, and the iteration goes on; one without ends it. All(after)
//     resumes behind a location that All yielded; across a resume a blob may come twice, never not at all; an
//     unusable location starts over.
//  8. Ownership. Put keeps no reference to its data; the result of Get is the caller's.
//  9. Context. It is checked before work and while queued: a context error means that nothing happened.
//     Once a commit has taken an operation its caller waits for the outcome. A stream is governed by the
//     context it was opened with.
//  10. After Close every method returns [ErrClosed]. Close twice is fine. Close waits for calls inside the
//     storage, never for idle Readers, Writers or a loop body over All.
//  11. Sizes. Empty blobs are legal; a blob above the storage's limit is [ErrTooLarge] and changes nothing.
//  12. Full disk. A Put that got [ErrNoSpace] is not there, neither now nor after a crash. Reads go on; a
//     later Put works once there is room.
//  13. A failed sync poisons. The affected file takes no more writes, acknowledged data stays readable, and
//     what the failed commit wrote is durably revoked before any further write there is acknowledged; until
//     then writes return [ErrFailed].
//
// All methods of a storage are safe for concurrent use.
package blobstor
