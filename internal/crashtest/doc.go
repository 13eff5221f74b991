// Package crashtest holds what tests of storages need to prove durability: a strict model of a power loss
// ([Recorder]), the failing of chosen operations ([Faults]), and the choice of a moment ([Steps]). All are a
// [durable.Tap], and the latter two pass on to another.
//
// The model is stricter than any file system: what no sync has confirmed is gone, in every directory level. A
// real disk usually keeps more, which is why only a model finds a sync that is missing.
package crashtest
