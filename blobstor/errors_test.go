package blobstor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/granary-store/granary/blobstor"
)

func TestErrorsMatch(t *testing.T) {
	wrap := func(err error) error { return blobstor.Wrap("put", address(1), "x", err) }
	path := func(errno syscall.Errno) error {
		return wrap(&fs.PathError{Op: "write", Path: "p", Err: errno})
	}
	for _, test := range []struct {
		name  string
		err   error
		match []error
		fault bool
	}{
		{"nil", nil, nil, false},
		{"not found", wrap(blobstor.ErrNotFound), []error{blobstor.ErrNotFound, fs.ErrNotExist}, false},
		{"closed", wrap(blobstor.ErrClosed), []error{blobstor.ErrClosed, fs.ErrClosed}, false},
		{"read-only", wrap(blobstor.ErrReadOnly), []error{blobstor.ErrReadOnly}, false},
		{"read-only file system", path(syscall.EROFS), []error{blobstor.ErrReadOnly, syscall.EROFS}, false},
		{"no space", wrap(blobstor.ErrNoSpace), []error{blobstor.ErrNoSpace}, false},
		{"full disk", path(syscall.ENOSPC), []error{blobstor.ErrNoSpace, syscall.ENOSPC}, false},
		{"quota", path(syscall.EDQUOT), []error{blobstor.ErrNoSpace, syscall.EDQUOT}, false},
		{"too large", wrap(blobstor.ErrTooLarge), []error{blobstor.ErrTooLarge}, false},
		{"out of range", wrap(blobstor.ErrOutOfRange), []error{blobstor.ErrOutOfRange}, false},
		{"in use", wrap(blobstor.ErrInUse), []error{blobstor.ErrInUse}, false},
		{"corrupt", wrap(blobstor.ErrCorrupt), []error{blobstor.ErrCorrupt}, true},
		{"layout", wrap(blobstor.ErrLayout), []error{blobstor.ErrLayout}, true},
		{"uncertain", wrap(blobstor.ErrUncertain), []error{blobstor.ErrUncertain}, true},
		{"failed sync", wrap(blobstor.Failed(syscall.EIO)), []error{blobstor.ErrFailed, syscall.EIO}, true},
		{"sync on a full disk", wrap(blobstor.Failed(syscall.ENOSPC)),
			[]error{blobstor.ErrFailed, blobstor.ErrNoSpace, syscall.ENOSPC}, false},
		{"I/O", path(syscall.EIO), []error{syscall.EIO}, true},
		{"unknown", io.ErrUnexpectedEOF, nil, true},
		{"too many files", path(syscall.EMFILE), []error{syscall.EMFILE}, false},
		{"cancelled", wrap(context.Canceled), []error{context.Canceled}, false},
		{"late", wrap(fmt.Errorf("queue: %w", context.DeadlineExceeded)), []error{context.DeadlineExceeded}, false},
		{"joined refusals", errors.Join(wrap(blobstor.ErrNotFound), blobstor.ErrClosed),
			[]error{blobstor.ErrNotFound, blobstor.ErrClosed}, false},
		{"joined, one fault", errors.Join(wrap(blobstor.ErrNotFound), path(syscall.EIO)), []error{blobstor.ErrNotFound}, true},
		{"joined, no fault", wrap(errors.Join(blobstor.ErrTooLarge, syscall.ENOSPC)),
			[]error{blobstor.ErrTooLarge, blobstor.ErrNoSpace}, false},
		{"says so itself", fmt.Errorf("list: %w", verdict(false)), nil, false},
		{"says so itself, a fault", wrap(verdict(true)), nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			wantIs(t, test.err, test.match...)
			if got := blobstor.IsFault(test.err); got != test.fault {
				t.Errorf("IsFault(%v) = %v, want %v", test.err, got, test.fault)
			}
		})
	}
}

// verdict is an error that knows whether it is a fault.
type verdict bool

func (v verdict) Error() string { return fmt.Sprintf("verdict %v", bool(v)) }
func (v verdict) Fault() bool   { return bool(v) }

func TestErrorsStayApart(t *testing.T) {
	all := []error{
		blobstor.ErrNotFound, blobstor.ErrClosed, blobstor.ErrReadOnly, blobstor.ErrNoSpace, blobstor.ErrTooLarge,
		blobstor.ErrOutOfRange, blobstor.ErrCorrupt, blobstor.ErrFailed, blobstor.ErrUncertain, blobstor.ErrLayout,
		blobstor.ErrInUse,
	}
	for i, a := range all {
		for j, b := range all {
			if got := errors.Is(blobstor.Wrap("op", address(1), "", a), b); got != (i == j) {
				t.Errorf("%v is %v: %v", a, b, got)
			}
		}
	}
}

func TestWrap(t *testing.T) {
	if err := blobstor.Wrap("get", address(1), "", nil); err != nil {
		t.Errorf("Wrap(nil) = %v", err)
	}
	err := blobstor.Wrap("get", address(1), "at", io.EOF)
	if again := blobstor.Wrap("read", address(2), "", err); again != err {
		t.Errorf("a wrapped error was wrapped again: %v", again)
	}
	e, ok := errors.AsType[*blobstor.Error](err)
	if !ok || e.Op != "get" || e.Address != address(1) || e.Location != "at" || !errors.Is(err, io.EOF) {
		t.Errorf("Wrap: %#v", err)
	}
	if got, want := err.Error(), "get "+address(1).String()+": EOF"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	if got := blobstor.Wrap("open", blobstor.Address{}, "", io.EOF).Error(); got != "open: EOF" {
		t.Errorf("text without address: %q", got)
	}
	if got := blobstor.Failed(syscall.EIO).Error(); !strings.Contains(got, syscall.EIO.Error()) {
		t.Errorf("text of a failed sync: %q", got)
	}
}
