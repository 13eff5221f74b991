package durable

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/granary-store/granary/blobstor"
)

// Descriptor says which store a directory is. On disk it is the file DESCRIPTOR of 128 bytes, big-endian:
//
//	offset  size  field
//	     0     7  "granary"
//	     7     2  version of this layout, 1
//	     9     2  Format
//	    11    16  Kind, padded with zeros
//	    27    16  ID
//	    43    16  Shape, four numbers
//	    59     1  length of Owner
//	    60    64  Owner, padded with zeros
//	   124     4  CRC-32C of what is before
type Descriptor struct {
	Kind   string    // which package's store it is, at most 16 bytes
	Format uint16    // version of that package's files
	ID     [16]byte  // random, so that no two stores are alike
	Shape  [4]uint32 // parameters that the package's layout depends on; 0 where unset
	Owner  []byte    // whose store it is, as the program says; at most [MaxOwner] bytes
}

// MaxOwner is the longest Owner in bytes.
const MaxOwner = 64

// Part of the format, never change.
const (
	descriptorMagic   = "granary"
	descriptorVersion = 1
	descriptorSize    = 128
	maxKind           = 16
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// check reports what of d cannot be stored.
func (d *Descriptor) check() error {
	switch {
	case d.Kind == "" || len(d.Kind) > maxKind || bytes.IndexByte([]byte(d.Kind), 0) >= 0:
		return fmt.Errorf("durable: kind %q", d.Kind)
	case len(d.Owner) > MaxOwner:
		return fmt.Errorf("durable: owner of %d bytes, at most %d", len(d.Owner), MaxOwner)
	}
	return nil
}

func (d *Descriptor) encode() []byte {
	b := make([]byte, 0, descriptorSize)
	b = append(b, descriptorMagic...)
	b = binary.BigEndian.AppendUint16(b, descriptorVersion)
	b = binary.BigEndian.AppendUint16(b, d.Format)
	b = append(b, make([]byte, maxKind)...)
	copy(b[11:], d.Kind)
	b = append(b, d.ID[:]...)
	for _, n := range d.Shape {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	b = append(b, byte(len(d.Owner)))
	b = append(b, make([]byte, MaxOwner)...)
	copy(b[60:], d.Owner)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decodeDescriptor reads what encode wrote. All its errors match blobstor.ErrLayout.
func decodeDescriptor(b []byte) (d Descriptor, err error) {
	if len(b) < 11 || string(b[:7]) != descriptorMagic {
		return d, fmt.Errorf("%w: the descriptor is damaged or not one of ours", blobstor.ErrLayout)
	}
	// The version comes before the length and the checksum, which a later one may change.
	if v := binary.BigEndian.Uint16(b[7:]); v > descriptorVersion {
		return d, fmt.Errorf("%w: descriptor version %d is of a later release", blobstor.ErrLayout, v)
	}
	if len(b) != descriptorSize || crc32.Checksum(b[:124], castagnoli) != binary.BigEndian.Uint32(b[124:]) {
		return d, fmt.Errorf("%w: the descriptor is damaged", blobstor.ErrLayout)
	}
	d.Format = binary.BigEndian.Uint16(b[9:])
	d.Kind = string(bytes.TrimRight(b[11:27], "\x00"))
	d.ID = [16]byte(b[27:43])
	for i := range d.Shape {
		d.Shape[i] = binary.BigEndian.Uint32(b[43+4*i:])
	}
	if n := int(b[59]); n > 0 && n <= MaxOwner {
		d.Owner = bytes.Clone(b[60 : 60+n])
	}
	// Only one form of each descriptor is legal, so that what was read is what would be written.
	if d.check() != nil || !bytes.Equal(d.encode(), b) {
		return Descriptor{}, fmt.Errorf("%w: the descriptor is malformed", blobstor.ErrLayout)
	}
	return d, nil
}

// match reports how the stored descriptor d differs from the wanted one, nil if it does not. Kind and Format must
// be equal, Shape and Owner only where want sets them.
func (d *Descriptor) match(want *Descriptor) error {
	switch {
	case d.Kind != want.Kind:
		return fmt.Errorf("%w: it is a %s, not a %s", blobstor.ErrLayout, d.Kind, want.Kind)
	case d.Format > want.Format:
		return fmt.Errorf("%w: %s format %d is of a later release", blobstor.ErrLayout, d.Kind, d.Format)
	case d.Format != want.Format:
		return fmt.Errorf("%w: %s format %d, not %d", blobstor.ErrLayout, d.Kind, d.Format, want.Format)
	case len(want.Owner) > 0 && !bytes.Equal(d.Owner, want.Owner):
		return fmt.Errorf("%w: it belongs to another owner", blobstor.ErrLayout)
	}
	for i, n := range want.Shape {
		if n != 0 && n != d.Shape[i] {
			return fmt.Errorf("%w: its shape is %v, not %v", blobstor.ErrLayout, d.Shape, want.Shape)
		}
	}
	return nil
}
