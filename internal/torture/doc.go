// Package torture shows that Granary keeps its promises when processes are killed, power fails, disks fill and system
// calls go wrong. It holds a driver and a verifier; the engines that do the harm are its tests, and RELIABILITY.md says
// what they show and how often they run.
//
// The driver is a process that lives on a [Stack], which is all of Granary wired as a node would: a router over
// blobovnicza and fstree, and a metabase beside them in the documented write order. Several goroutines put, put again,
// remove, read and iterate while others compact, reshape, scrub, collect and rebuild. Each writes a line of the journal
// before it begins a change, and another when the change was acknowledged, before it goes on.
//
// The verifier is a [Ledger]. It reads the journal as it comes and knows of every object what may and what must be
// there. Whatever happens to the process, the stack is opened again and compared: what was put is there byte for byte,
// what was removed is gone, nothing is there that was never put, what was under way is there as a whole or not at all,
// no record is without its blob, Check finds nothing, and counters equal a recount.
package torture
