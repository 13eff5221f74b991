// Package archtest holds the shape of the module as tests, so that a change of it is a decision and not an
// accident: who imports whom, which files own bytes, who makes names, and how long a file or function may grow.
//
// The rules bind files that are not tests. Each check is a function over a parsed file, and each is proven able
// to fail on a planted source. README.md is proven here too: its code is built and run as a module of its own.
package archtest
