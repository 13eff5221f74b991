// Package crashtest holds what tests of storages need to prove durability: a strict model of a power loss
// ([Recorder]) and the failing of chosen operations ([Faults]). Both are a [durable.Tap].
//
// The model is stricter than any file system: what no sync has confirmed is gone, in every directory level. A
// real disk usually keeps more, which is why only a model finds a sync that is missing.
package crashtest
