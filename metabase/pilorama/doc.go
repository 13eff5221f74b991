// Package pilorama keeps trees that any number of replicas change at a time: versions of objects, directories, settings
// of a node. Replicas tell each other their operations, in any order, and all come to one tree. There is no network in
// it: a program sends what [DB.Add] and its like return, and hands what it gets to [DB.ApplyBatch].
//
// # Model
//
// A tree is named by a container and a name. It has nodes with attributes, below a root. There is one kind of
// operation: at this time, move this node below that parent, with these attributes. A node that nobody knows is made by
// it; what is moved to the [Trash] is removed. A tree is what all its operations make of it in the order of their times.
// One that would put a node below itself changes nothing, and stays in the log: another that comes later but is older
// may make it possible. This is the algorithm of Kleppmann, Mulligan, Gomes and Beresford ("A highly-available move
// operation for replicated trees", 2021).
//
// Times are unique numbers. Each replica has a residue class of them ([Clock]), and an operation made here gets the
// first one behind all that its tree has seen. A replica that lost its database, or with NoSync the end of it, first gets
// back from others what it had told them, or it would give the same times to other operations, which those refuse with
// [ErrConflict].
//
// # Catching up
//
// Each replica remembers how far it has the log of each other one and asks for [DB.OpLog] from there on; whatever it has
// already changes nothing. What all replicas have may be removed from the log ([DB.Truncate]). A replica that lags
// behind that gets [ErrTruncated] and begins anew from [DB.Base].
//
// # Durability
//
// When a write returns nil, it holds after power loss, unless the database was opened with NoSync. Concurrent writes,
// of all trees, share a commit; there is no timer. Those to one tree wait in a queue of limited length, and when that is
// full their callers wait for a place, until their contexts end; nothing is given up but by its caller. When a commit
// fails, its outcome is not known: the error matches [blobstor.ErrUncertain], and nothing is read or written until the
// file was read again from the disk. After an I/O error every call returns ErrFailed until the database is closed and
// opened; a disk that is full is looked at again with the next call. A ballast file keeps room for Drop and Truncate.
// An operation whose commit is uncertain may be in the log, where other replicas find it; a program that repeats an
// AddByPath looks first. Apply may always be repeated.
//
// Entries have checksums that are bound to their keys, so that one that is damaged or stands in another's place is
// [blobstor.ErrCorrupt] and never an answer. That a key is missing altogether, because a page of the file is damaged, is
// what [DB.Check] finds.
//
// # Format
//
// A database is a directory with a descriptor of kind "pilorama" and one bbolt file with one bucket, "pilorama". A key
// begins with its class. Integers are big-endian: numbers of trees have 4 bytes and are never used again, times and
// nodes 8. Every value ends with the CRC-32C of its key, class included, and of the value. Varints are those of
// Protocol Buffers, unsigned.
//
//	0 dict      container ID, tree name: number
//	1 log       number, time: operation
//	2 nodes     number, node: birth 8, place
//	3 children  number, parent, name, 00 01, kind, birth 8, node: nothing
//	4 parents   number, node: nothing
//	5 redos     number, time: nothing
//	6 heights   number: where the log begins, 8; absent is 0
//	7 settings  "version": one byte, 1; "next": the next number, absent is 1; "dropped/", number: nothing, keys of it are left
//
// An operation is a byte of flags (1: it changed something; 2, only with 1: the child was somewhere before), parent 8,
// child 8 and attributes; with flag 2 follows the place before. A place is a parent 8, the time 8 of the operation that
// put the child there, and the attributes that it gave. Attributes are a varint of the bytes that follow, and of each
// its key and value, each a varint of its length and its bytes. Birth is the time of the first operation that changed
// where a node is.
//
// In the keys of children each zero byte of a name is followed by ff. A name is the value of the first attribute
// "FileName", or empty; the kind is 0 if that is the only attribute and 1 otherwise. Every node that an operation in the
// log, or a record, has as a parent is in parents, except the root (0) and the trash (2^64-1); others may be. In redos
// are the times of all operations in the log on nodes that are in parents. Keys of log and redos below the height, and
// keys of dropped trees, may be left of a removal that was interrupted.
package pilorama
