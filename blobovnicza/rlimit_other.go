//go:build !unix

package blobovnicza

// openLimit returns how many files the process may have open: a number that every system allows.
func openLimit() int { return 1024 }
