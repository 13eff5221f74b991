package torture

import (
	"fmt"
	"strconv"
	"strings"
)

// The journal has a line for each of these, a word and a number or text.
const (
	wordOpen     = "open"   // the stack is open
	wordPutting  = "put?"   // a put of this object begins
	wordPut      = "put"    // it was acknowledged
	wordRemoving = "del?"   // a removal begins
	wordRemoved  = "del"    // it was acknowledged
	wordGone     = "gone"   // blob and record of a marked object are gone for good
	wordWrong    = "wrong"  // the driver has seen what may never be
	wordFailed   = "failed" // a call failed that should not have
)

// fate is what is known of an object.
type fate uint8

const (
	unheard fate = iota // nothing was ever said of it
	maybe               // a put or a removal was under way
	there               // put and acknowledged
	loose               // removed and acknowledged, or never completely put: no record, but perhaps a blob, which nobody minds
	gone                // not even that
)

func (f fate) String() string {
	return [...]string{"unheard of", "under way", "there", "loose", "gone"}[f]
}

// Ledger is what a journal says of all objects: what must and what may be there.
type Ledger struct {
	fates map[Object]fate
	acked int
}

// NewLedger returns a ledger of nothing.
func NewLedger() *Ledger { return &Ledger{fates: map[Object]fate{}} }

// Acked is how many acknowledgements were noted.
func (l *Ledger) Acked() int { return l.acked }

// There returns the objects that are certainly there, in no order.
func (l *Ledger) There() (ns []Object) {
	for n, f := range l.fates {
		if f == there {
			ns = append(ns, n)
		}
	}
	return ns
}

// Note takes in a line of a journal, without its end. The error is what the driver complains of.
func (l *Ledger) Note(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case wordOpen:
		return nil
	case wordWrong, wordFailed:
		return fmt.Errorf("the driver says: %s", line)
	}
	number, err := strconv.ParseInt(rest, 10, 64)
	if err != nil {
		return fmt.Errorf("a line of the journal is %q", line)
	}
	return l.turn(word, Object(number))
}

func (l *Ledger) turn(word string, n Object) error {
	was := l.fates[n]
	next := was
	switch word {
	case wordPutting:
		if was != there { // else it is put again, and must not get lost by that
			next = maybe
		}
	case wordRemoving:
		next = maybe
	case wordPut:
		next = there
	case wordRemoved:
		if next = loose; n.Bare() {
			next = gone
		}
	case wordGone:
		if was == there && n.once() {
			return fmt.Errorf("object %d was collected although nothing had removed it", n)
		}
		if next = gone; !n.once() {
			return nil // it may have been put again before this line came
		}
	default:
		return fmt.Errorf("a word of the journal is %q", word)
	}
	if word == wordPut || word == wordRemoved || word == wordGone {
		l.acked++
	}
	l.fates[n] = next
	return nil
}
