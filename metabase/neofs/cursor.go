package neofs

import (
	"encoding/base64"
	"math/big"
	"strings"

	"github.com/granary-store/granary/metabase"
)

// A cursor is base64 of the place where a page ended. In the order of IDs that is an ID; in that of an attribute, its
// name, a zero byte, its value and the ID. A value has a zero byte behind it, unless results come in the order of
// numbers: there it is a byte, 1 if it is not negative, and 32 bytes of magnitude, big-endian, complemented if it is.

const numberSize = 33

// byID reports whether the results of a translated search come in the order of IDs.
func byID(q *metabase.Query) bool {
	return len(q.Attrs) == 0 || len(q.Filters) == 0 || q.Filters[0].Op == metabase.Absent
}

func byNumber(q *metabase.Query) bool {
	return !byID(q) && isNumeric(q.Filters[0].Op)
}

// Cursor returns the cursor that leads behind a page of a query, "" if that was the last.
func Cursor(q metabase.Query, page metabase.Page) string {
	if !page.More {
		return ""
	}
	var b []byte
	if !byID(&q) {
		b = append(append(b, q.Filters[0].Key...), 0)
	}
	if n, ok := parseNumber(page.Next.Value); byNumber(&q) && ok {
		number := n.FillBytes(make([]byte, numberSize))
		if number[0] = 1; n.Sign() < 0 {
			complement(number)
		}
		b = append(b, number...)
	} else if !byID(&q) {
		b = append(append(b, page.Next.Value...), 0)
	}
	return base64.StdEncoding.EncodeToString(append(b, page.Next.Object[:]...))
}

func complement(number []byte) {
	for i := range number {
		number[i] ^= 0xFF
	}
	number[0] &= 1
}

// ParseCursor returns the place where a query goes on. A cursor that [Cursor] cannot have made for it is
// [metabase.ErrQuery].
func ParseCursor(q metabase.Query, cursor string) (at metabase.Position, err error) {
	if cursor == "" {
		return at, nil
	}
	raw, err := base64.StdEncoding.DecodeString(cursor)
	if err != nil || base64.StdEncoding.EncodeToString(raw) != cursor || len(raw) < idSize {
		return at, badQuery("no cursor")
	}
	copy(at.Object[:], raw[len(raw)-idSize:])
	value, ok := string(raw[:len(raw)-idSize]), true
	if !byID(&q) {
		value, ok = strings.CutPrefix(value, q.Filters[0].Key+"\x00")
	}
	switch {
	case byID(&q):
		if ok = value == ""; len(q.Filters) > 0 {
			at.Value = q.Filters[0].Value // the only one there is
		}
	case byNumber(&q):
		var number bool
		at.Value, number = numberOf([]byte(value))
		ok = ok && number
	default:
		f := &q.Filters[0]
		var whole bool
		at.Value, whole = strings.CutSuffix(value, "\x00")
		ok = ok && whole && (f.Op == metabase.NE || strings.HasPrefix(at.Value, f.Value)) && (f.Op != metabase.EQ || at.Value == f.Value)
	}
	if !ok || at.Object.IsZero() {
		return metabase.Position{}, badQuery("the cursor of another search")
	}
	return at, nil
}

// numberOf returns the digits of a number in a cursor.
func numberOf(b []byte) (digits string, ok bool) {
	if len(b) != numberSize || b[0] > 1 {
		return "", false
	}
	negative := b[0] == 0
	if negative {
		complement(b)
	}
	n := new(big.Int).SetBytes(b[1:])
	if negative {
		n.Neg(n)
	}
	return n.String(), !negative || n.Sign() != 0
}
