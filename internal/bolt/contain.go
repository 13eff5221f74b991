package bolt

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// missing is what Tx.Bucket panics with when a static bucket is not there.
type missing struct{ error }

// contain calls fn. A panic of bbolt's, or a memory fault, becomes an error and crashed is true; a missing bucket
// becomes an error alone. Any other panic goes on, and so does a Goexit. The setting that makes a fault a panic belongs to
// the goroutine, so fn must not start another one that touches mapped memory.
func contain(fn func() error) (crashed bool, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if m, ok := p.(missing); ok {
			err = m.error
			return
		}
		if !isFault(p) && !fromBolt() {
			panic(p)
		}
		crashed, err = true, corrupt("bbolt: %v", p)
	}()
	return false, fn()
}

// isFault reports whether p is a fault at an address. Code without unsafe cannot cause one, except in mapped memory:
// a nil pointer is reported without an address.
func isFault(p any) bool {
	_, ok := p.(interface {
		runtime.Error
		Addr() uintptr
	})
	return ok
}

// fromBolt reports whether bbolt panicked. It is called while the panic is handled, so that the frames behind it are
// still there. The first of them that is not the standard library's is to blame.
func fromBolt() bool {
	pc := make([]uintptr, 64)
	frames := runtime.CallersFrames(pc[:runtime.Callers(1, pc)])
	for behind := false; ; {
		f, more := frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			behind = true
		case behind && !isStandard(f.Function):
			return strings.HasPrefix(f.Function, "go.etcd.io/bbolt")
		}
		if !more {
			return false
		}
	}
}

// isStandard reports whether a function is of the standard library, as its package's path tells: that of a module
// begins with a domain.
func isStandard(function string) bool {
	first, _, isPath := strings.Cut(function, "/")
	if !isPath {
		return !strings.HasPrefix(function, "main.")
	}
	return !strings.Contains(first, ".")
}
