package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/metabase"
)

// Header says what an object is. A blob is an object as a whole: the length of its header in 4 bytes, the header as
// JSON, and the payload. The object's ID is the SHA-256 of all of that.
type Header struct {
	Container ID
	Kind      metabase.Kind     `json:",omitzero"`
	Expires   uint64            `json:",omitzero"` // the last epoch it lives through
	Target    ID                `json:",omitzero"` // of a tombstone or a lock
	Attrs     map[string]string `json:",omitempty"`
	Part      *Part             `json:",omitempty"` // of a larger object
}

// Part says which part of an erasure-coded object this is. It repeats the header of that object, which has no blob.
type Part struct {
	Of    ID
	Index int
	Size  int64 // of the whole payload
	Attrs map[string]string
}

// Attributes by which a part is found. Users' keys do not begin with '$'.
const (
	attrParent = "$Parent"
	attrIndex  = "$Index"
)

const (
	lengthSize = 4
	maxHeader  = prefixSize - lengthSize // one read gets it
)

var errHeader = errors.New("node: bad header")

// encode returns the beginning of the blob: all of it but the payload.
func (h *Header) encode() ([]byte, error) {
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	if len(text) > maxHeader {
		return nil, fmt.Errorf("%w: %d bytes", errHeader, len(text))
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...), nil
}

// decode reads the header at the beginning of a blob, and says where the payload begins. It refers to nothing of b.
func decode(b []byte) (h Header, payload int64, err error) {
	if len(b) < lengthSize {
		return h, 0, errHeader
	}
	n := binary.BigEndian.Uint32(b)
	if n > maxHeader || int(n) > len(b)-lengthSize {
		return h, 0, fmt.Errorf("%w: %d bytes", errHeader, n)
	}
	payload = lengthSize + int64(n)
	if err := json.Unmarshal(b[lengthSize:payload], &h); err != nil {
		return h, 0, fmt.Errorf("%w: %w", errHeader, err)
	}
	return h, payload, nil
}

// records makes what the metabase knows of an object with a payload of size bytes. A part brings the record of the
// object that it is a part of.
func (h *Header) records(addr blobstor.Address, size int64) []metabase.Record {
	r := metabase.Record{
		Address: addr, Kind: h.Kind, Size: size, Expires: h.Expires, Target: blobstor.ID(h.Target), Attrs: attrs(h.Attrs),
	}
	if h.Part == nil {
		return []metabase.Record{r}
	}
	r.Parent = blobstor.ID(h.Part.Of)
	r.Attrs = append(r.Attrs,
		metabase.Attr{Key: attrParent, Value: r.Parent.String(), Mode: metabase.Opaque},
		metabase.Attr{Key: attrIndex, Value: fmt.Sprint(h.Part.Index)})
	whole := metabase.Record{
		Address: blobstor.Address{Container: addr.Container, Object: r.Parent},
		Size:    h.Part.Size, Expires: h.Expires, Virtual: true, Attrs: attrs(h.Part.Attrs),
	}
	return []metabase.Record{r, whole}
}

// attrs puts attributes into an order, so that equal objects have equal records.
func attrs(of map[string]string) (list []metabase.Attr) {
	for _, key := range slices.Sorted(maps.Keys(of)) {
		list = append(list, metabase.Attr{Key: key, Value: of[key]})
	}
	return list
}
