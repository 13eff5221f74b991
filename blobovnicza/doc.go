// Package blobovnicza stores small objects: append-only containers in a tree, one sync for all waiting writers.
//
// A blobovnicza is a bounded file of records. A leaf is a directory of them: one is active and takes all
// writes, the others are full and never change. A tree has width^depth leaves; an address belongs to exactly one
// of them, so no look-up ever visits a second. One leaf serves one disk: more leaves mean more and smaller commits.
//
// A put is one record appended, and one fdatasync that every caller shares who queued while the last one ran. A
// get with a location is one read; without, a filter in memory for each full file says which may have the blob, and
// one block of that file's index where. Everything is found again from the records alone: indexes are a cache.
//
// While commits are small, the space behind the active file's end is zeroed ahead, because a sync over it is faster
// than one of an append; that space is at most 64 MiB in a tree, and Close gives it back.
//
// # Shape
//
// The default is one leaf, which is best for one disk, be it an SSD or a hard disk: all writers share one commit, and
// on a hard disk one place that is written. Four leaves came near to it with a hundred writers, 256 took seven times as
// long (BENCHMARKS.md). For several disks make a store on each: space is counted and set aside for one file system. A
// leaf that is damaged does not hold up the others.
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
// A void has neither checksums nor padding: its length is a multiple of 8 and its payload is not read. Nor is padding
// looked at, or a gap between two records that is shorter than a header: no record can have been there.
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
// the one in the highest file, at the highest offset. A void covers a place that an unfinished commit left torn, or
// damage whose loss was accepted.
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
// NNNNNNNN.idx is the sorted index of the data file NNNNNNNN.blz, and only a cache of it: it may be missing, and a
// damaged one is made again. It has a row for each address that the data file has a put or a tombstone of before
// some offset, in the order of sort keys, and of addresses where sort keys are equal. A row has 80 bytes:
//
//	offset  size  field
//	     0     8  sort key
//	     8    64  address
//	    72     4  newest record of the address: offset/8
//	    76     4    length of its payload; the top bit says that it is a tombstone
//
// Rows lie in blocks of 4096 bytes from offset 0: 51 rows, in the last block the remaining ones and zeros in the
// place of others, then 12 zeros and the block's checksum in 4 bytes. Behind the blocks are, without gaps:
//
//	size  field
//	   8  for each block: the sort key of its first row
//	   8  filter of all sort keys: seed
//	   4    segment length L, a power of two
//	   4    number of segments N, at least 1
//	   1    for each of (N+2)*L: fingerprint
//	  64  sieve: for each 128 rows, the last ones fewer, and at least one block
//	   8  for each tombstone: its sort key, in order
//	  88  footer, the end of the file
//
// The footer:
//
//	offset  size  field
//	     0     4  magic b1 47 52 49
//	     4     1  version, 1
//	     5     3  reserved, zero
//	     8    40  the data file itself, as an entry of a manifest: the index covers what is before its end
//	    48     8  offset of the newest manifest before that end
//	    56     8  highest commit number before that end
//	    64     4  number of rows
//	    68     4  number of sort keys of tombstones
//	    72     4  number of fingerprints
//	    76     4  checksum of first keys, filter and sieve
//	    80     4  checksum of the sort keys of tombstones
//	    84     4  checksum of the footer
//
// Each of these checksums is that of the offset in 8 bytes at which what it covers begins, and of these bytes,
// started with the seed of the data file; those of a block and of the footer cover all of it before themselves.
// Nothing is left over: the numbers in the footer give the file's size.
//
// The filter is a binary fuse filter of three places with fingerprints of 8 bits. All its numbers are of 64 bits
// without sign and wrap around. The hash of a sort key is h after
//
//	h = key + seed
//	h = (h xor h>>33) * ff51afd7ed558ccd
//	h = (h xor h>>33) * c4ceb9fe1a85ec53
//	h = h xor h>>33
//
// and with p = h*N*L / 2^64, the product not wrapped and the quotient rounded down, its places are
//
//	p
//	(p + L) xor (h>>18 mod L)
//	(p + 2L) xor (h mod L)
//
// If the exclusive or of the fingerprints there is the low 8 bits of h xor h>>32, the index may have the key, else
// it has not. How seed, L and N are chosen is the writer's affair. A filter of no keys has fingerprints too.
//
// The sieve is asked after the filter. With g = h * 9e3779b97f4a7c15 and B blocks of 64 bytes, the key's block is
// g*B / 2^64, the product not wrapped, and its three bits in it are g mod 512, g>>9 mod 512 and g>>18 mod 512, where
// bit n is bit n mod 8, from the lowest, of byte n/8. If one of them is not set the index has not the key.
//
// # Recovery
//
// A leaf is opened when it is used first. Of a full file the footer, the first keys and the filter of its index are
// read, and what the newest manifest counts; of the active file its index, and behind that the headers of records.
// Records that no index covers may be in the page cache only: their file and the names in the directory are synced
// first, and the file's pages dropped, unless the file ends with a manifest whose synced field is its own offset. An
// index that is missing or damaged is made from the data file, and written again. Without a valid manifest in the
// newest file all files are read, none is removed, and the next write begins a new file.
//
// In the active file a place that is no record is damage if a later record's synced field lies behind its start: it
// was on disk once. If none does, it is a commit that was torn, or damage to the last one, which nothing can tell apart: whole records behind
// it are kept, a void is written over it, it is logged and counted. What follows the last record is cut off. In a
// full file everything before the end must be there.
//
// Damage to a payload concerns one blob: it is ErrCorrupt until it is put again or deleted. So does damage to the
// header of a record that an index knows, in memory or on disk; an iteration yields such a blob without an error.
// Without an index such damage hides addresses, so while there is any, or a file is missing, a miss in that leaf is
// ErrCorrupt too, and Delete of a missing blob succeeds. One damaged leaf does not concern the others. [Tree.Check]
// finds all damage, [Tree.Repair] accepts the loss.
//
// # Space
//
// The bytes of deleted blobs come back by compaction: what is live in the sparsest full file is copied behind the
// end of the active one, then a manifest is written that does not list the file any more, and the pair of files is
// removed. A tombstone is copied only while an older file may hold its blob. A crash at any step leaves the old
// file, or the copies, or both, and the newest record counts. Readers are not held up: a look-up that still knew the
// old file looks again, an iteration keeps the files that it began with.
//
// On a full disk puts fail with ErrNoSpace and leave nothing behind, deletes and compaction go on. They use files
// that were set aside while there was room: each leaf has one named reserve, of 64 KiB at least, and beside the
// descriptor there is one named spare, as large as the largest file, once the disk gets full (see
// [Options.KeepSpare]). Both are zeros until they get a manifest and the name of the leaf's next data file; behind its
// end such a file keeps its zeros. They hold tombstones and copies, no puts; when there is room again new ones are
// made first, if need be of the files that compaction removes. File systems that allocate again what is overwritten
// keep this promise only as far as they have room for that.
//
// # Limits
//
// A blob has at most 64 MiB, 1 MiB by default. A file is full at a 64th of its leaf, at least 256 MiB and at most
// 4 GiB, and on a small disk a 16th of that; or at [Options.FileRecords], a number that bounds the memory for its index
// while it is active. In memory a record of a full file takes 1.8 bytes, a tombstone 2 more, and one of an active file
// about 110; blocks of indexes that are used often take [Options.IndexCache] at most. Files are opened as they are
// needed, see [Options.MaxOpen].
package blobovnicza
