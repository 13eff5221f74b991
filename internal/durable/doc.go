// Package durable makes names last: it is the only place in the module that creates, links, renames or removes
// one. A [Dir] is an open directory, and its operations take single names, so nothing a name contains can lead
// out of it, and symbolic links, pipes and devices are refused instead of followed.
//
// # Durability
//
// A new file is written without its name ([Dir.Temp]), synced ([File.Datasync]), named ([Temp.Link] or
// [Temp.Replace]), and its directory is synced ([Dir.Sync]); only then does it survive power loss. A removal
// lasts after Dir.Sync, a move to another directory ([Dir.Move]) after one there, and a new directory after
// [Dir.Mkdir], which syncs the directory above. The sync of data never covers a name, nor the other way round. A sync
// that failed is never repeated: the kernel may report the second one as good although the bytes are gone. File and Dir
// remember the failure.
//
// On Linux data is synced by fdatasync, on darwin by F_FULLFSYNC, on Windows by FlushFileBuffers. Windows has no
// sync for directories: there, names are as safe as the file system's journal makes them.
//
// # Stores
//
// A store is a directory with a [Descriptor], which says what it is, a lock ([OpenStore]), and in some packages a mark
// that says how it was left ([Dir.SetMark]).
//
// A [Tap] sees every operation before and after, and may fail it; tests use it to inject faults and to model a
// loss of power. The build tag generic selects the portable code on Linux too.
package durable
