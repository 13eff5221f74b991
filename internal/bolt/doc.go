// Package bolt is the only importer of bbolt: it opens a store of one bbolt file, makes its commits durable or says
// that it does not know, and turns bbolt's panics into errors.
//
// # Store
//
// A store is a directory with a descriptor and a lock, the file "bolt", a mark that tells whether the last open
// ended with Close, and the ballast. The file is written without its name, synced and then named, so a crash leaves
// no store or a whole one. Its buckets are made with it and never later.
//
// # Durability
//
// When Update returns nil the transaction is on disk. bbolt writes pages into free places, syncs, writes one of two
// meta pages and syncs again; a failure on the way leaves open which of the two the disk has, while the file's map
// shows the newer already. So after a failed commit nobody reads through that map again: Update returns
// blobstor.ErrUncertain. After a full disk the next call waits for the transactions that run, syncs, drops the cached
// pages, reads the metas from disk and goes on with what is there. After any other error every call returns
// blobstor.ErrFailed until the program closes the store and opens it again. No sync that failed is repeated.
//
// # Damage
//
// bbolt checks only its metas and panics, or faults, on much of the rest. A panic of bbolt's, or a memory fault
// while a transaction runs, becomes an error that matches blobstor.ErrCorrupt. In a read transaction that is all. In
// a write transaction bbolt may hold locks, so the store refuses every later call with an error that matches
// blobstor.ErrFailed and blobstor.ErrCorrupt; Close does not wait for those locks, but the file's map stays until the
// process ends. A panic that is the caller's own rolls back and goes on.
//
// What no wrapper can catch is a page that is its own descendant: the stack overflows. Open therefore reads metas,
// freelist and length before bbolt sees the file, after an unclean stop also the pages of the last commit, and of a
// file without a mark every page. [DB.Check] walks every page at any time. All of them read the file and not its map.
//
// # Memory
//
// What a transaction returns is mapped memory: it is valid until the transaction ends, and read-only. The caller
// copies what it keeps.
package bolt
