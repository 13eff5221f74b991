package pilorama

import (
	"errors"
	"fmt"

	"github.com/granary-store/granary/blobstor"
)

// What is refused and changes nothing. A tree or a node that is not known is [blobstor.ErrNotFound], what is above a
// limit [blobstor.ErrTooLarge]. None of them is a fault ([blobstor.IsFault]).
var (
	ErrInvalid  error = refusal("pilorama: invalid argument")
	ErrCycle    error = refusal("pilorama: a node cannot be below itself")
	ErrConflict error = refusal("pilorama: another operation has this time")
	ErrClock    error = refusal("pilorama: no time is left")

	// ErrPressed matches [blobstor.ErrNoSpace].
	ErrPressed = fmt.Errorf("%w: pilorama: only Drop and Truncate are accepted", blobstor.ErrNoSpace)

	// ErrTruncated is what a replica gets that is too far behind: see [TruncatedError].
	ErrTruncated error = refusal("pilorama: the log begins later")
)

type refusal string

func (r refusal) Error() string { return string(r) }
func (r refusal) Fault() bool   { return false }

// TruncatedError says that operations before Height are not in the log any more. A replica that lacks some of them
// begins anew: it drops the tree, applies what [DB.Base] of another replica yields, truncates at Height and applies the
// log from there on. It matches ErrTruncated.
type TruncatedError struct{ Height uint64 }

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("%v: at %d", ErrTruncated, e.Height)
}

// Is makes it match [ErrTruncated].
func (e *TruncatedError) Is(target error) bool { return target == ErrTruncated }

// Fault says that it does not speak against the disk.
func (e *TruncatedError) Fault() bool { return false }

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

func tooLarge(format string, args ...any) error {
	return fmt.Errorf("%w: pilorama: %s", blobstor.ErrTooLarge, fmt.Sprintf(format, args...))
}

func missing(what string) error {
	return fmt.Errorf("%w: pilorama: %s", blobstor.ErrNotFound, what)
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: pilorama: %s", blobstor.ErrCorrupt, fmt.Sprintf(format, args...))
}

// errUnchanged rolls back a transaction that wrote nothing.
var errUnchanged = errors.New("nothing to commit")

// wrap says which operation on which container failed.
func wrap(op string, tree Tree, err error) error {
	return blobstor.Wrap(op, blobstor.Address{Container: tree.Container}, "", err)
}
