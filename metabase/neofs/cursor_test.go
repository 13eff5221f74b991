package neofs

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/granary-store/granary/metabase"
)

func query(tb testing.TB, s Search) metabase.Query {
	tb.Helper()
	q, err := s.Query()
	must(tb, err)
	return q
}

// TestCursorBytes: cursors are a format between nodes.
func TestCursorBytes(t *testing.T) {
	at := func(value string) metabase.Position { return metabase.Position{Value: value, Object: id(5)} }
	five := "0000" + "05" + strings.Repeat("00", 27) + "ff00"
	parent := id(3)
	for _, c := range []struct {
		name string
		s    Search
		at   metabase.Position
		want string
	}{
		{"by ID", search(false), at(""), five},
		{"by ID, equal", search(false, Filter{"a", equal, "b"}), at("b"), five},
		{"by ID, prefix", search(false, Filter{"a", prefix, "b"}), at(""), five},
		{"absent", search(true, Filter{"a", absent, ""}), at(""), five},
		{"equal", search(true, Filter{"a", equal, "b"}), at("b"), "6100" + "6200" + five},
		{"with a zero", search(true, Filter{"a", notEqual, "b"}), at("c\x00"), "6100" + "630000" + five},
		{"empty", search(true, Filter{"", prefix, ""}), at(""), "00" + "00" + five},
		{"binary", search(true, Filter{SplitParent, equal, parent.String()}), at(string(parent[:])),
			hex.EncodeToString([]byte(SplitParent)) + "00" + hex.EncodeToString(parent[:]) + "00" + five},
		{"root", search(true, Filter{Key: Root}), at("1"), hex.EncodeToString([]byte(Root)) + "00" + "3100" + five}, // bug 39
		{"number", search(true, Filter{"a", gt, "1"}), at("258"), "6100" + "01" + strings.Repeat("00", 30) + "0102" + five},
		{"negative", search(true, Filter{"a", ge, "-258"}), at("-258"), "6100" + "00" + strings.Repeat("ff", 30) + "fefd" + five},
		{"zero", search(true, Filter{"a", le, "1"}), at("0"), "6100" + "01" + strings.Repeat("00", 32) + five},
		{"most", search(true, Filter{"a", le, most}), at(most), "6100" + "01" + strings.Repeat("ff", 32) + five},
		{"least", search(true, Filter{"a", le, most}), at("-" + most), "6100" + "00" + strings.Repeat("00", 32) + five},
	} {
		q := query(t, c.s)
		cursor := Cursor(q, metabase.Page{More: true, Next: c.at})
		raw, err := base64.StdEncoding.DecodeString(cursor)
		if got := hex.EncodeToString(raw); got != c.want || err != nil {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if got, err := ParseCursor(q, cursor); got != c.at || err != nil {
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.at)
		}
		if Cursor(q, metabase.Page{Next: c.at}) != "" {
			t.Errorf("%s: a cursor behind the last page", c.name)
		}
		for n := range len(raw) {
			if at, err := ParseCursor(q, base64.StdEncoding.EncodeToString(raw[:n])); n > 0 && err == nil && c.name != "with a zero" {
				t.Errorf("%s: %d of %d bytes are %q", c.name, n, len(raw), at)
			}
		}
	}
}

func TestInvalidCursors(t *testing.T) {
	text, number := search(true, Filter{"a", equal, "b"}), search(true, Filter{"a", gt, "1"})
	begins := search(true, Filter{"a", prefix, "b"})
	byID, any := search(false), search(true, Filter{"a", notEqual, "b"})
	five := string(raw(5))
	digits := strings.Repeat("\x00", 31) + "\x05"
	for name, c := range map[string]struct {
		s   Search
		raw string
	}{
		"of another attribute":     {text, "c\x00b\x00" + five},
		"of a longer attribute":    {text, "a\x00\x00b\x00" + five},
		"of another value":         {text, "a\x00c\x00" + five},
		"of another prefix":        {begins, "a\x00c\x00" + five},
		"no zero behind the name":  {any, "ab" + "c\x00" + five},
		"no zero behind the value": {any, "a\x00c" + five},
		"no value":                 {any, "a\x00" + five},
		"an ID alone":              {text, five},
		"of one by value":          {byID, "a\x00b\x00" + five},
		"ID of zeros":              {byID, strings.Repeat("\x00", 32)},
		"ID of 31 bytes":           {byID, five[1:]},
		"ID of 33 bytes":           {byID, five + "\x00"},
		"text for a number":        {number, "a\x005\x00" + five},
		"sign of 2":                {number, "a\x00\x02" + digits + five},
		"zero with a sign":         {number, "a\x00\x00" + strings.Repeat("\xff", 32) + five},
		"number of 31 bytes":       {number, "a\x00\x01" + digits[1:] + five},
		"number of 33 bytes":       {number, "a\x00\x01\x00" + digits + five},
		"number for a text":        {text, "a\x00\x01" + digits + five},
	} {
		c.s.Cursor = base64.StdEncoding.EncodeToString([]byte(c.raw))
		if q, err := c.s.Query(); !errors.Is(err, metabase.ErrQuery) {
			t.Errorf("%s: %q, %v", name, q.After, err)
		}
	}
	good := base64.StdEncoding.EncodeToString([]byte(five))
	for _, cursor := range []string{
		"*", good[:len(good)-1], good + "\n", good[:4] + "\r\n" + good[4:], good + "=", strings.ReplaceAll(good, "=", ""),
		good[:len(good)-2] + "B=", base64.URLEncoding.EncodeToString([]byte("\xff\xfe" + five[2:])),
	} {
		byID.Cursor = cursor
		if q, err := byID.Query(); !errors.Is(err, metabase.ErrQuery) {
			t.Errorf("%q: %q, %v", cursor, q.After, err)
		}
	}
}

// TestNumbersInPages: the order of numbers goes on from page to page, across zero.
func TestNumbersInPages(t *testing.T) {
	w := newWorld(t)
	values := []string{"-" + most, "-1000", "-1", "0", "1", "255", "256", "18446744073709551616", most}
	for i, v := range values {
		w.put(t, object(90-i, header(0, 0).attr("n", v), 0))
	}
	w.put(t, object(91, header(0, 0).attr("n", most+"0"), 0))
	s := search(true, Filter{"n", ge, "-" + most})
	s.Limit = 1
	if got := w.search(t, s); !slices.Equal(got, []int{90, 89, 88, 87, 86, 85, 84, 83, 82}) {
		t.Error(got)
	}
}

// TestCursorOfAnotherDatabase: a place need not be that of an object, for databases share cursors.
func TestCursorOfAnotherDatabase(t *testing.T) {
	w := shelf(t)
	s := search(true, Filter{"n", gt, "0"})
	s.Cursor = Cursor(query(t, s), metabase.Page{More: true, Next: metabase.Position{Value: "14", Object: id(77)}})
	if got := w.search(t, s); !slices.Equal(got, []int{15, 16, 17, 18, 19}) {
		t.Error(got)
	}
	s = search(false, Filter{"mod", equal, "1"})
	s.Cursor = base64.StdEncoding.EncodeToString(raw(14))
	if got := w.search(t, s); !slices.Equal(got, []int{16, 19}) {
		t.Error(got)
	}
}

func FuzzCursor(f *testing.F) {
	searches := []Search{
		search(false), search(false, Filter{"a", equal, "b"}), search(true, Filter{"a", equal, "b"}), search(true, Filter{"a", notEqual, "b"}),
		search(true, Filter{"a", prefix, "b"}), search(true, Filter{"a", lt, "5"}), search(true, Filter{"a", absent, ""}),
	}
	for i := range searches {
		at := metabase.Position{Value: strconv.Itoa(-i), Object: id(i)}
		f.Add(uint8(i), Cursor(query(f, searches[i]), metabase.Page{More: true, Next: at}))
	}
	f.Fuzz(func(t *testing.T, n uint8, cursor string) {
		q := query(t, searches[int(n)%len(searches)])
		at, err := ParseCursor(q, cursor)
		if err != nil {
			wantIs(t, err, metabase.ErrQuery)
			return
		}
		if again := Cursor(q, metabase.Page{More: true, Next: at}); cursor != "" && again != cursor {
			t.Errorf("%q is %q, which is %q", cursor, at, again)
		}
	})
}
