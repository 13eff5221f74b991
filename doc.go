// Package granary is the map of an embeddable object store: the local disk layer of a storage node. There is
// nothing to call here; a program imports the packages below and wires them.
//
// # Packages
//
//   - blobstor: the contract. Identity, interfaces, errors, and the router that sends a blob to a storage by size.
//   - blobovnicza: the storage for small objects. Append-only files that describe and check themselves.
//   - fstree: the storage for large objects. One file each, the payload from offset 0.
//   - metabase: the index. What an object is, whether it may be read, removed or must be kept.
//   - metabase/neofs: the rules of NeoFS for it, as pure functions.
//   - metabase/pilorama: trees that replicas change at a time.
//   - tsz: time series in a few bits a point.
//   - blobstor/storagetest: the laws of the contract as a test suite, for these storages and for yours.
//
// Storages import blobstor and never each other; only the program knows which of them it uses. A storage of your
// own is a route like any other: examples/plugin has one.
//
// # Durability
//
// When Put, Commit or Delete returns nil, the operation survives a power failure. The order is always the same:
// first the data is synced, then it gets its name, then the name is synced, then the caller is told. Nothing is
// visible under its name before it is whole, and nothing is returned that did not match its checksum.
//
//   - Linux: fdatasync for data, fsync of the directory for names.
//   - darwin: F_FULLFSYNC, which also empties the cache of the drive.
//   - Windows: FlushFileBuffers for data. Names are as durable as the journal of NTFS makes them; that is not proven.
//
// Callers that write at the same time share one sync, so a durable write is cheap in company. A storage that was
// opened with NoSync promises none of this.
//
// # Write order
//
// A program that keeps records about its blobs, in an index of any kind, takes two steps on one address:
//
//   - To put: the blob, then its record.
//   - To remove: mark the record (from here on the object is invisible, durably), then the blob, then the record.
//
// A crash between the steps leaves a whole blob without a record, or an invisible record whose removal is
// repeated; never a live record without its blob. blobstor.Locks serialize the two steps on one address.
//
// # Not promised
//
//   - More than one process: a store that is open for writing is opened once, and a lock enforces it.
//   - Network file systems, or disks that acknowledge a sync before they did it.
//   - Redundancy: damage is found and reported, never repaired from a copy that is not there.
//   - Replacement: an address names one content for ever.
//   - Secrecy: nothing is encrypted, and deleted bytes are not overwritten.
package granary
