// Package fstree stores each blob as one file: the storage for large objects.
//
// # Layout
//
// A blob's file is <root>/ab/<name>. The name is its address in lower-case hexadecimal, the container first. The
// directory is the first byte of SHA-256(store ID, address), so that no choice of IDs can crowd one; a tree of
// depth 2 or 3 goes on with the next bytes, one of depth 0 has no directories: <root>/<name>, <root>/ab/cd/<name>,
// <root>/ab/cd/ef/<name>. If there are levels, all 256 directories of the first one are there; deeper ones are made
// on demand. A blob's location is the first 8 bytes of that hash, whatever the depth.
//
// The random store ID and the depth are in the file DESCRIPTOR, whose format internal/durable describes. Its kind is
// "fstree", its format 1. Of its four shape numbers the first is the depth plus one. The second is zero, or, from the
// first to the last step of a [Tree.Reshape], the old depth plus one; the others are zero. Any other shape is
// refused. A Reshape replaces the descriptor, moves each blob from its place at the old depth to that at the new one,
// and replaces the descriptor again. Meanwhile a blob lies at one of the two places, or at both, where its two names lead
// to one file. Who looks for it looks at the old place first, then at the new one. New blobs go to the
// new place, but a blob whose name is at the old one is confirmed, and replaced if damaged, there. A removal concerns
// both. The first number changes places with the second when a Reshape turns back.
//
// # Format
//
// A file is the payload from offset 0, so that plain tools can read it, then the table, then the footer. All
// numbers are big-endian, all checksums CRC-32C.
//
//	table   for each 64 KiB block of the payload its checksum, 4 bytes; after every 1,023 of them and after the
//	        last one a checksum of these, of the payload length, the address and the piece's number (from 0,
//	        4 bytes), so that a piece of the table fills 4 KiB
//	footer  payload length (8 bytes), address (64), version (2), "fstree", checksum of the footer so far (4)
//
// A read verifies the blocks that it touches, so a small range of a large blob costs two small reads and a block.
//
// # Durability
//
// When Put, Commit or Delete returns nil, it survives power loss. A file is written without a name, synced,
// named, and its directory is synced. Callers share syncs of a directory. On Linux the file has no name until
// then (O_TMPFILE); elsewhere, and where the file system lacks that, it has a temporary name that the next Open
// removes. When the sync of a directory fails, the new name is taken back and the directory takes no more writes
// until the store is opened again. The file "clean" is called "dirty" while the store is open for writing
// ("unsynced" with [Options.NoSync]); Open syncs the file system if it finds it so.
//
// A Reshape gives a file its new name, syncs that directory, and only then removes the old name and syncs that
// directory, before the descriptor says that nothing is left at the old depth.
//
// # Limits
//
// A blob may have up to 1<<62 bytes, less if [Options.MaxSize] says so. A stream needs 4 bytes of memory for 64
// KiB written. Directories are never removed, nor does Reshape remove those that it has emptied. Network file systems
// are not supported.
//
// # Versions
//
// This is version 1 of the store's format and of the footer. Every later release reads it.
package fstree
