package tsz

import "errors"

// Refusals of [Encoder.Append] and [Seal]. The encoder is as it was before the call.
var (
	// ErrOutOfOrder: the time is before that of the last point.
	ErrOutOfOrder = errors.New("tsz: time is before the last point")
	// ErrDuplicate: the time is that of the last point.
	ErrDuplicate = errors.New("tsz: time of the last point")
	// ErrRange: the unit cannot hold the time, or there is no such unit.
	ErrRange = errors.New("tsz: outside the range of the unit")
	// ErrFull: the series has as many points, or bytes, as it may have.
	ErrFull = errors.New("tsz: series is full")
	// ErrFinished: the stream was finished.
	ErrFinished = errors.New("tsz: stream is finished")
)

// What is wrong with bytes that are read.
var (
	// ErrTruncated: the bytes end before the series does.
	ErrTruncated = errors.New("tsz: truncated")
	// ErrCorrupt: the bytes contradict themselves, their checksum or their header.
	ErrCorrupt = errors.New("tsz: corrupt")
	// ErrVersion: a block of a version or codec that this release does not know.
	ErrVersion = errors.New("tsz: unknown version")
)
