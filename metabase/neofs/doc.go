// Package neofs tells a metabase what NeoFS objects are: pure functions between the headers, searches and cursors of
// the protocol and the records, queries and positions of package [metabase], which knows nothing of NeoFS.
//
// # Records
//
// [Parse] and [Records] read the beginning of a stored object, a protobuf message of the NeoFS API v2, package
// neo.fs.v2.object. Messages and fields are those of the protocol's description (nspcc-dev/neofs-spec: 20-api-v2/object.md,
// 01-arch/04-object_split.md, 01-arch/09-erasure-coding.md); their numbers stand beside the code that reads them.
//
//   - The header of the object that this one is a part of becomes a Virtual record, if that object has an ID already.
//   - Parts of one split have one Chain: the split ID (version 1, 16 bytes), or the ID of the first part (version 2).
//   - A tombstone or lock has the Target that its associated-object attribute names. One that lists its members in the
//     payload, as before that attribute, is refused: to take it for another object would lose a lock.
//   - A regular object that lists children is a Link, as split version 1 has no other. A storage group is Regular.
//   - An expiration epoch that is no decimal number never comes. That of 0 is taken as 1, for 0 would be never.
//   - Names that begin with "$Object:" are fields of the header. An attribute that claims one is left out, as are the
//     hashes of EC parts and the homomorphic hash.
//
// IDs, owner, checksum and split ID are in the index as bytes; [Value] and [Text] are between them and their text. A
// filter for the beginning of such a text is not valid, unless it is all of it or nothing.
//
// # Searches
//
// [Search.Query] translates a search, or refuses it: with [metabase.ErrQuery] if it is not valid, with [ErrUnreachable]
// if no object can ever match. Results come in the protocol's order: by ID if no attributes are asked for or the first
// filter is NotPresent, else by the first filter's attribute.
package neofs
