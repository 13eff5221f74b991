package storagetest

import "github.com/granary-store/granary/blobstor"

// Hide returns s without its optional interfaces: no [blobstor.Streamer], no [blobstor.RangeReader], no
// [blobstor.Batcher]. It shows whether a program's fallbacks work.
func Hide(s blobstor.Storage) blobstor.Storage { return struct{ blobstor.Storage }{s} }
