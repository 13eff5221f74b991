// Package blobovnicza stores small objects: append-only containers in a tree, one sync for all waiting writers.
//
// A blobovnicza is a bounded file of records. A leaf is a directory of them: one is active and takes all
// writes, the others are full and never change. A tree has width^depth leaves; an address belongs to exactly one
// of them, so no look-up ever visits a second. One leaf serves one disk: more leaves mean more and smaller commits.
//
// A put is one record appended, and one fdatasync that every caller shares who queued while the last one ran. A
// get with a location is one read. Everything is found again from the records alone; what is kept in memory is a
// cache of them.
//
// While commits are small, the space behind the active file's end is zeroed ahead, because a sync over it is faster
// than one of an append; that space is at most 64 MiB in a tree, and Close gives it back.
//
// # Durability
//
// When a write returns nil its record is on disk, and it is visible only from then on. After a crash the active
// file is read back: what was acknowledged is there, and of a commit that was under way each record is there
// whole, or not at all. After a sync that failed, the file takes no more writes; the next file's manifest says
// where it ended before the failed commit, and only then do writes go on.
//
// # Format
//
// All numbers are big-endian, all checksums CRC-32C (Castagnoli), all offsets count from the start of a file. A
// store is a directory with the files DESCRIPTOR and LOCK and the directory tree. The descriptor (see
// internal/durable) has the kind "blobovnicza", format 1, and the shape width, depth+1, 0, 0. Below tree there are
// depth levels of directories named 0, 1, ... up to width-1 in decimal; their digits, the top one most
// significant, are the number of the leaf to the base of the width. A leaf's data files are NNNNNNNN.blz, the
// file's number as 8 lower-case hexadecimal digits, from 1. Every leaf has a file from the time the store is made.
// Files of other names are not looked at.
//
// The sort key of an address is the first 8 bytes of SHA-256(store ID, address), and its leaf that number modulo
// the number of leaves.
//
// A data file is a row of records without gaps; what is behind the last one is not looked at, zeros in particular.
// A record begins at a multiple of 8:
//
//	offset  size  field
//	     0     4  magic b1 47 52 4e
//	     4     1  version, 1
//	     5     1  kind: 1 manifest, 2 put, 3 tombstone, 4 void
//	     6     2  reserved, zero
//	     8    64  address (zero in a manifest and a void)
//	    72     4  length of the payload in bytes
//	    76     4  synced/8: the file was synced up to this offset when the record was written
//	    80     8  commit number
//	    88     4  place of the record of this address that it replaces: file (0: it replaces none)
//	    92     4    offset/8
//	    96     4    length of the payload; the top bit says that it is a tombstone
//	   100     4  checksum of the header
//	   104        payload
//	              for each 64 KiB of the payload, the last one shorter: its checksum
//	              zeros up to a multiple of 8
//
// A void has neither checksums nor padding: its length is a multiple of 8 and its payload is not read.
//
// The seed of a file is the first 4 bytes of SHA-256(store ID, leaf in 2 bytes, file in 4 bytes). The header's
// checksum is that of the record's offset in 8 bytes and the 100 bytes before it, started with the seed; the
// payload's checksums are started with the header's. So a record that was copied to another place or is contained
// in a payload is not a record.
//
// The commit number grows with every attempt to write in a leaf, failed ones included; all records of one commit
// bear the same. A record whose number is lower than one before it in the file is left over from an attempt that
// was cut back, and does not exist.
//
// A put is the blob, a tombstone (without payload) its removal; the newest record of an address counts, that is,
// the one in the highest file, at the highest offset. A void covers a place that an unfinished commit left torn.
//
// A manifest lists every older file of the leaf, in the order of numbers:
//
//	offset  size  field
//	     0     4  number of entries
//	     4     4  reserved, zero
//	     8        for each 40 bytes: file (4), number of records (4), of objects (4), of tombstones (4), end (8),
//	              live bytes (8), dead bytes (8)
//
// Bytes behind a listed end do not exist. Objects are puts that no later record replaces, and live bytes those of
// their records; tombstones are counted likewise; dead bytes are those of replaced records and of voids. An end of
// 2^63-1 marks a file that was lost before any manifest listed it. The first record of a file is a manifest, and
// the file gets its name only when that is synced. The newest valid manifest decides: an older file that it does
// not list is removed; one that it lists and that is missing or short is damage. When a successor has its name,
// a manifest that also lists the file itself is written behind the end of the full file: a leaf whose newest file
// is sealed so has lost its active file.
//
// # Recovery
//
// At Open the headers of every file are read. A file that does not end with a manifest whose synced field is its own
// offset is synced first, and dropped from the page cache. In the active file a place
// that is no record is damage if a later record's synced field lies behind its start: it was on disk once. If none
// does, it is a commit that was torn, or damage to the last one, which nothing can tell apart: whole records behind
// it are kept, a void is written over it, it is logged and counted. What follows the last record is cut off. In a
// full file everything before the end must be there.
//
// Damage to a payload concerns one blob: it is ErrCorrupt until it is put again or deleted. Damage to a header
// hides addresses, so while there is any, a miss in that leaf is ErrCorrupt too, and Delete of a missing blob
// succeeds.
//
// # Limits
//
// A blob has at most 64 MiB, 1 MiB by default. A file is full at a 64th of its leaf, at least 256 MiB and at most
// 4 GiB. In memory there is an index entry for every record, about 40 bytes.
package blobovnicza
