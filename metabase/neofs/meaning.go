package neofs

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/granary-store/granary/blobstor"
	"github.com/granary-store/granary/metabase"
)

// Types of objects by their number, and what they are to others.
var (
	typeNames = [...]string{"REGULAR", "TOMBSTONE", "STORAGE_GROUP", "LOCK", "LINK"}
	typeKinds = [...]metabase.Kind{metabase.Regular, metabase.Tombstone, metabase.Regular, metabase.Lock, metabase.Link}
)

// complete gives the record what follows from the header as a whole.
func (h *head) complete() error {
	switch {
	case h.Address.Container.IsZero():
		return bad("an object of no container")
	case h.objectType >= uint64(len(typeNames)) || h.Size < 0:
		return bad("an object of type %d and %d bytes", h.objectType, h.Size)
	case h.owner != "" && !isOwner(h.owner):
		return bad("an owner with a wrong checksum")
	case h.splitID != "" && len(h.splitID) != uuidSize:
		return bad("a split ID of %d bytes", len(h.splitID))
	}
	regular := h.objectType == 0
	if h.Kind = typeKinds[h.objectType]; regular && h.children {
		h.Kind = metabase.Link
	}
	parent, first := bytesOf(h.Parent), bytesOf(h.first)
	if h.Chain = cmp.Or(h.splitID, first); h.Chain == "" && parent == "" && len(h.parentHeader) > 0 {
		h.Chain = bytesOf(h.Address.Object) // it is the first
	}
	h.Attrs = make([]metabase.Attr, 0, 11+len(h.attrs))
	h.add(Version, h.version, metabase.Opaque)
	h.add(Owner, h.owner, metabase.Opaque)
	h.add(PayloadHash, h.hash, metabase.Opaque)
	h.add(ObjectType, typeNames[h.objectType], metabase.Opaque)
	h.add(CreationEpoch, strconv.FormatUint(h.epoch, 10), metabase.Auto)
	h.add(PayloadLength, strconv.FormatInt(h.Size, 10), metabase.Auto)
	h.add(SplitParent, parent, metabase.Opaque)
	h.add(SplitFirst, first, metabase.Opaque)
	h.add(SplitID, h.splitID, metabase.Opaque)
	if regular && parent == "" && h.Chain == "" {
		h.add(Root, set, metabase.Opaque)
	}
	for _, a := range h.attrs {
		h.attribute(a[1], a[2])
	}
	if h.isHelper() && h.Target.IsZero() {
		return bad("a %v that names no target", h.Kind)
	}
	return nil
}

// bytesOf returns the bytes of an ID, "" if it is zero.
func bytesOf(id blobstor.ID) string {
	if id.IsZero() {
		return ""
	}
	return string(id[:])
}

func (h *head) isHelper() bool { return h.Kind == metabase.Tombstone || h.Kind == metabase.Lock }

// add adds a field of the header, if it is there.
func (h *head) add(key, value string, mode metabase.Mode) {
	if value != "" {
		h.Attrs = append(h.Attrs, metabase.Attr{Key: key, Value: value, Mode: mode})
	}
}

// attribute adds an attribute of the header, and what it means.
func (h *head) attribute(key, value string) {
	mode := metabase.Auto
	switch {
	case key == ecHashes || strings.HasPrefix(key, reserved):
		return
	case key == Expiration:
		if n, err := strconv.ParseUint(value, 10, 64); err == nil {
			h.Expires = max(n, 1)
		}
	case key == Associate:
		mode = metabase.Opaque
		if id, err := blobstor.ParseID(value); err == nil {
			if value = string(id[:]); h.isHelper() {
				h.Target = id
			}
		}
	}
	h.Attrs = append(h.Attrs, metabase.Attr{Key: key, Value: value, Mode: mode})
}
