package fstree

import "os"

// mkfifo makes something else that is no blob.
func mkfifo(path string) error { return os.WriteFile(path, nil, 0o600) }
