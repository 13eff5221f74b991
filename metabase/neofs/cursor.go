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

// byID reports whether the results of a translated search come in the order of IDs.
func byID(q *metabase.Query) bool {
	return len(q.Attrs) == 0 || len(q.Filters) == 0 || q.Filters[0].Op == metabase.Absent
}

// Cursor returns the cursor that leads behind a page of a query, "" if that was the last.
func Cursor(q metabase.Query, page metabase.Page) string {
	if !page.More {
		return ""
	}
	var b []byte
	if !byID(&q) {
		b = append(append(b, q.Filters[0].Key...), 0)
		b = appendValue(b, page.Next.Value, isNumeric(q.Filters[0].Op))
	}
	return base64.StdEncoding.EncodeToString(append(b, page.Next.Object[:]...))
}

func appendValue(b []byte, value string, numeric bool) []byte {
	n, ok := parseNumber(value)
	if !numeric || !ok {
		return append(append(b, value...), 0)
	}
	sign := byte(1)
	if n.Sign() < 0 {
		sign = 0
		n.Add(n, greatest)
	}
	return append(append(b, sign), n.FillBytes(make([]byte, 32))...)
}

// ParseCursor returns the place where a query goes on. A cursor that [Cursor] cannot have made for it is
// [metabase.ErrQuery].
func ParseCursor(q metabase.Query, cursor string) (at metabase.Position, err error) {
	if cursor == "" {
		return at, nil
	}
	b, err := base64.StdEncoding.DecodeString(cursor)
	if err != nil || base64.StdEncoding.EncodeToString(b) != cursor || len(b) < idSize {
		return at, badQuery("no cursor")
	}
	value, ok := cutValue(&q, string(b[:len(b)-idSize]))
	if copy(at.Object[:], b[len(b)-idSize:]); !ok || at.Object.IsZero() {
		return metabase.Position{}, badQuery("the cursor of another search")
	}
	at.Value = value
	return at, nil
}

// cutValue returns the value in a cursor without its ID.
func cutValue(q *metabase.Query, s string) (value string, ok bool) {
	if byID(q) {
		if len(q.Filters) > 0 {
			value = q.Filters[0].Value // the only one there is
		}
		return value, s == ""
	}
	f := &q.Filters[0]
	s, ok = strings.CutPrefix(s, f.Key+"\x00")
	switch {
	case !ok:
		return "", false
	case isNumeric(f.Op):
		if len(s) != 33 {
			return "", false
		}
		n := new(big.Int).SetBytes([]byte(s[1:]))
		if s[0] == 0 {
			n.Sub(n, greatest)
		}
		return n.String(), s[0] == 1 || n.Sign() < 0
	}
	value, ok = strings.CutSuffix(s, "\x00")
	ok = ok && (f.Op != metabase.EQ || value == f.Value) && (f.Op != metabase.Prefix || strings.HasPrefix(value, f.Value))
	return value, ok
}
