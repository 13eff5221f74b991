package blobstor

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"
)

// The errors that decide what a program does next; test for them with [errors.Is].
var (
	ErrNotFound   error = &sentinel{"blob not found", fs.ErrNotExist}
	ErrClosed     error = &sentinel{"storage is closed", fs.ErrClosed}
	ErrReadOnly         = errors.New("storage is read-only")
	ErrNoSpace          = errors.New("no space left")
	ErrTooLarge         = errors.New("blob is too large")
	ErrOutOfRange       = errors.New("range is outside the blob")
	ErrCorrupt          = errors.New("blob is corrupt")
	ErrFailed           = errors.New("write failed, outcome revoked or pending")
	ErrUncertain        = errors.New("commit may or may not have happened")
	ErrLayout           = errors.New("wrong layout") // version, kind, owner or parameters of a store
	ErrInUse            = errors.New("store is in use")
)

// sentinel is an error that also matches the io/fs one which programs already know.
type sentinel struct {
	text string
	is   error
}

func (s *sentinel) Error() string        { return s.text }
func (s *sentinel) Is(target error) bool { return target == s.is }

// Error is the one wrapper around what a storage returns: the operation, and the blob where there is one.
type Error struct {
	Op       string // "put", "get", "open", ...
	Address  Address
	Location Location
	Err      error
}

// Wrap returns err as an *Error, or unchanged if it is nil or one already: context is added once, at the border
// of a package.
func Wrap(op string, addr Address, at Location, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	return &Error{Op: op, Address: addr, Location: at, Err: err}
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if !e.Address.IsZero() {
		b.WriteByte(' ')
		b.WriteString(e.Address.String())
	}
	b.WriteString(": ")
	b.WriteString(e.Err.Error())
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// Is lets the errors of the operating system match this package's: a full disk or quota is ErrNoSpace, a
// read-only file system is ErrReadOnly.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrNoSpace:
		return isNoSpace(e.Err)
	case ErrReadOnly:
		return errors.Is(e.Err, syscall.EROFS)
	}
	return false
}

func isNoSpace(err error) bool {
	for _, no := range noSpaceErrnos {
		if errors.Is(err, no) {
			return true
		}
	}
	return errors.Is(err, ErrNoSpace)
}

// Failed returns the error of a sync that failed, or of a write after which the file could not be restored: it
// matches ErrFailed and err. It is a fault unless err is a full disk.
func Failed(err error) error { return &failedError{err} }

type failedError struct{ err error }

func (e *failedError) Error() string        { return ErrFailed.Error() + ": " + e.err.Error() }
func (e *failedError) Unwrap() error        { return e.err }
func (e *failedError) Is(target error) bool { return target == ErrFailed }
func (e *failedError) Fault() bool          { return !isNoSpace(e.err) }

// IsFault reports whether err speaks against disk or files and should count against the store's health.
// Refusals do not: not found, out of range, too large, read-only, no space, in use, closed, cancelled, too many
// open files, and errors whose own Fault method says so. Of errors joined, one fault makes it a fault. I/O
// errors, corrupt, failed, layout and all that is unknown are faults; nil is none.
func IsFault(err error) bool {
	if err == nil {
		return false
	}
	if f, ok := err.(interface{ Fault() bool }); ok {
		return f.Fault()
	}
	switch e := err.(type) { //nolint:errorlint // it walks the chain itself
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			if IsFault(inner) {
				return true
			}
		}
		return false
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return IsFault(inner)
		}
	}
	return !isRefusal(err)
}

var refusals = append([]error{
	ErrNotFound, ErrOutOfRange, ErrTooLarge, ErrReadOnly, ErrNoSpace, ErrInUse, ErrClosed,
	context.Canceled, context.DeadlineExceeded,
	syscall.EMFILE, syscall.ENFILE, syscall.EROFS,
}, noSpaceErrnos...)

func isRefusal(err error) bool {
	for _, r := range refusals {
		if errors.Is(err, r) {
			return true
		}
	}
	return false
}
