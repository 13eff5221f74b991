package neofs

import (
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
	if h.objectType >= uint64(len(typeNames)) {
		return bad("an object of type %d", h.objectType)
	}
	regular := h.objectType == 0
	if h.Kind = typeKinds[h.objectType]; regular && h.children {
		h.Kind = metabase.Link
	}
	switch {
	case h.Chain != "":
	case !h.first.IsZero():
		h.Chain = string(h.first[:])
	case h.Parent.IsZero() && len(h.parentHeader) > 0:
		h.Chain = string(h.Address.Object[:]) // it is the first
	}
	h.add(ObjectType, typeNames[h.objectType], metabase.Opaque)
	h.add(CreationEpoch, strconv.FormatUint(h.epoch, 10), metabase.Auto)
	h.add(PayloadLength, strconv.FormatInt(h.Size, 10), metabase.Auto)
	if regular && h.Parent.IsZero() && h.Chain == "" {
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

func (h *head) isHelper() bool { return h.Kind == metabase.Tombstone || h.Kind == metabase.Lock }

func (h *head) add(key, value string, mode metabase.Mode) {
	h.Attrs = append(h.Attrs, metabase.Attr{Key: key, Value: value, Mode: mode})
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
	h.add(key, value, mode)
}
