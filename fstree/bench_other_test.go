//go:build !linux

package fstree

func spread(string) {}
