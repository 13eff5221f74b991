//go:build !linux

package blobovnicza

import "testing"

func smallFS(t *testing.T, _ string) string {
	t.Skip("needs tmpfs")
	return ""
}
