// Package storagetest says whether a storage keeps the laws of package blobstor.
//
// A storage proves itself in one test:
//
//	func TestConformance(t *testing.T) {
//		storagetest.Test(t, storagetest.Harness{
//			New: func(tb testing.TB) blobstor.Storage { return open(tb, tb.TempDir()) },
//		})
//	}
//
// [Test] runs one named subtest per law and clause, with the storage's optional interfaces shown and hidden, after
// a reopen, and behind a read-only view. What needs more than the interface can do (a loss of power, a damaged
// byte, a full disk, a sync that fails) is asked of the [Harness]; a hook that is missing is a visible skip.
//
// The package also holds what tests of programs need: [Memory], the reference storage; [Fault], whose n-th call
// fails, stalls or falls short; [Hide], which hides optional interfaces; and [Bench], the benchmarks that all
// storages share.
package storagetest
