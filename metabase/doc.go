// Package metabase is the index of a storage node: what every object is, whether it may be read, removed or must be
// kept, and, if the program wants that, where its blob lies.
//
// The engine is neutral. It knows five relations: an object buries another one (a tombstone), holds it (a lock), is a
// part of it, expires with an epoch, and is marked for removal. It knows no attribute's meaning: a program makes
// a [Record] from the header of an object, with rules of its own that run before the transaction, never in it. Package
// neofs has those of the NeoFS family.
//
// # Write order
//
// Put: first the blob, then the record. Removal: first the mark, with which the object cannot be seen any more, then
// the blob, then the record; [DB.Collect] does the last two. So a crash leaves a blob that nobody knows of, or a record
// that cannot be seen and that Collect meets again, and never a record that can be seen without its blob. A program
// holds the lock of an address ([blobstor.Locks], [Options.Locks]) over both steps of a Put.
//
// # Status
//
// One function decides about an object, for the epoch in which a call begins. In this order: a marked container takes
// all with it; a lock holds its target, whatever else is said of it; a tombstone buries it; a mark; its expiry. An
// object of which none of this is said shares what is decided about the object that it is a part of, and a lock on
// that one holds its parts too. Parts of parts are followed up to four objects. A lock counts until it expires or is
// marked; a tombstone until it is marked or removed, for if it ended with its epoch, objects would come back.
//
// # Durability
//
// When a write returns nil, it holds after power loss, unless the database was opened with NoSync. Concurrent writes
// share a commit. When a commit fails, its outcome is not known: the error matches [blobstor.ErrUncertain], and nothing
// is read or written until the file was read again from the disk. After an I/O error every call returns ErrFailed
// until the database is closed and opened; a disk that is full is looked at again with the next call. A ballast file
// keeps room for removals.
//
// A Put writes the record and what relations it has, and keeps the entries of its attributes in a log and in memory,
// where a Search finds them. When those of some thousand objects are there they are written to the index together and
// in order, in parts that follow other commits, for each entry lies on a page of its own.
//
// Records and index entries have checksums that are bound to their keys, so that one that is damaged or stands in
// another's place is [blobstor.ErrCorrupt] and never an answer. That a key is missing altogether, because a page of
// the tree is damaged, is what [DB.Check] finds. If the log is damaged, every Search by attributes is ErrCorrupt until
// the database is Reset. [Rebuild] makes a database from the blobs; it cannot know marks, nor removals that were
// interrupted before the blob went.
//
// # Format
//
// A database is a directory with a descriptor and one bbolt file with one bucket, "metabase". A key begins with its
// class; integers are big-endian. Every value ends with the CRC-32C of its key, class included, and of the value. An
// ID is 32 bytes. A number stands for a container and has 4 bytes; numbers are never used again. In texts within keys
// each zero byte is followed by ff, and 00 01 is the end, so keys sort as the texts do.
//
//	0 dict      container ID: number, 1 byte that is 1 if the container is marked
//	1 recs      number, object ID: the record
//	2 attrs     number, 't', key, end, value, end, object ID: nothing
//	            number, 'n', key, end, integer, object ID: nothing
//	3 rels      number, 'b', target ID, tombstone ID: nothing
//	            number, 'h', target ID, lock ID: nothing
//	            number, 'p', parent ID, part ID: the part's chain
//	            number, 'c', chain, end, part ID: the parent ID if the part names it
//	4 marks     number, object ID: 1 for Garbage, 2 for Redundant
//	5 expires   epoch 8, number, object ID: nothing
//	6 counts    number: the seven fields of Counters, 8 bytes each
//	7 settings  "version": 1; "next": the next number; "dropped/", number: nothing, keys of it are left
//	8 pending   count 8, complemented: of each object that one commit recorded: number, ID, list
//
// An object's entries in attrs may be missing as long as pending has it. Its list is a varint of the bytes that follow,
// and of each entry a varint of its length and its bytes, without the number and the object ID that it begins and ends
// with. What an object in pending had when it was recorded may be out of date: its record decides.
//
// A record is a byte with the kind (two bits; 4: it has a target, 8: a parent, 16: it is virtual), size and last epoch
// as varints, target and parent if it has them, then chain and location, each a varint of its length and its bytes,
// and for each attribute its mode, key and value in the same way. An integer in a key is a byte that is 1 unless it is
// negative, and the magnitude in 32 bytes, complemented if it is negative. Attributes of mode Stored have no entry;
// those of mode Auto that are a decimal integer from -(2^256-1) to 2^256-1 have both; what occurs twice has one.
package metabase
