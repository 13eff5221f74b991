package durable

// Op is a kind of operation that a [Tap] sees.
type Op uint8

// The operations. The path is that of the file or directory concerned; for OpLink and OpRename it is the new
// name, for OpSyncAll the top directory.
const (
	OpCreate   Op = iota // a file is made, with or without a name
	OpOpen               // an existing file is opened
	OpRead               // bytes of a file are read
	OpWrite              // bytes of a file are written
	OpTruncate           // a file's length is set
	OpSync               // a file's data and length are made durable
	OpMkdir              // a directory is made
	OpLink               // a file gets a name that was free
	OpRename             // a name is moved, by Rename replacing what had the new one, by Move not
	OpRemove             // a name is removed
	OpSyncDir            // a directory's names are made durable
	OpSyncAll            // everything below a directory is made durable
)

var opNames = [...]string{
	"create", "open", "read", "write", "truncate", "sync", "mkdir", "link", "rename", "remove", "sync directory",
	"sync all",
}

func (op Op) String() string { return opNames[op] }

// Tap lets tests see and veto operations. A file without a name has a path that no other file of the process
// has. f is the file that the operation works on: the one synced, written, read, linked; nil where it is a
// matter of names alone, and before a file is open. A Tap is called concurrently.
type Tap interface {
	// Before may fail the operation: it is not run if the error is non-nil, and fails with that error.
	Before(op Op, path string, f *File) error
	// After is called when the operation succeeded.
	After(op Op, path string, f *File)
}

// before asks the tap, if there is one.
func (o *origin) before(op Op, d *Dir, name string, f *File) error {
	if o.tap == nil {
		return nil
	}
	return o.tap.Before(op, d.join(name), f)
}

// after tells the tap, if there is one.
func (o *origin) after(op Op, d *Dir, name string, f *File) {
	if o.tap != nil {
		o.tap.After(op, d.join(name), f)
	}
}
