//go:build !linux

package fstree

import (
	"os"
	"testing"
)

func spread(string) {}

func datasync(f *os.File) error { return f.Sync() }

func dropFile(*testing.B, string) {}
