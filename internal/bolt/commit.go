package bolt

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/granary-store/granary/blobstor"
)

// commitError is the error of a commit that failed: it may be on disk or not. It matches blobstor.ErrUncertain, and
// blobstor.ErrNoSpace if the disk is full, which is no fault.
type commitError struct{ err error }

func (e *commitError) Error() string { return blobstor.ErrUncertain.Error() + ": " + e.err.Error() }
func (e *commitError) Unwrap() error { return e.err }
func (e *commitError) Fault() bool   { return !isNoSpace(e.err) }

func (e *commitError) Is(target error) bool {
	return target == blobstor.ErrUncertain || target == blobstor.ErrNoSpace && isNoSpace(e.err)
}

// noSpace makes an error that is a full disk match blobstor.ErrNoSpace.
func noSpace(err error) error {
	if err == nil || !isNoSpace(err) || errors.Is(err, blobstor.ErrNoSpace) {
		return err
	}
	return fmt.Errorf("%w: %w", blobstor.ErrNoSpace, err)
}

// isNoSpace reports whether err is a full disk or quota.
func isNoSpace(err error) bool {
	return errors.Is(blobstor.Wrap("commit", blobstor.Address{}, "", err), blobstor.ErrNoSpace) ||
		isGrowth(err, syscall.ENOSPC) || isGrowth(err, syscall.EDQUOT) || isGrowth(err, syscall.EFBIG)
}

// isGrowth reports whether err is what bbolt makes of no when it cannot make the file longer: it keeps only the text.
func isGrowth(err error, no syscall.Errno) bool {
	text := err.Error()
	return strings.HasSuffix(text, ": "+no.Error()) &&
		(strings.Contains(text, "file resize error: ") || strings.Contains(text, "file sync error: "))
}
