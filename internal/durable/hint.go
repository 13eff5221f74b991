package durable

// What follows are hints for streams: the disk works beside them, and their pages do not push out of memory what
// others read again. A hint makes nothing durable, changes no byte and hides no error, for the sync still reports
// it; where the system does not know it, nothing happens. Ranges are in bytes; one of length 0 goes to the end of
// the file.

// ReadAhead asks the system to read a range into memory.
func (f *File) ReadAhead(off, n int64) { readAhead(&f.f, off, n) }

// WriteBack asks the system to start writing a range to the disk.
func (f *File) WriteBack(off, n int64) { writeBack(&f.f, off, n) }

// DropRange asks the system to forget cached pages of a range that are on disk already, so that the next read
// comes from there. Of the others it starts the writing.
func (f *File) DropRange(off, n int64) { dropRange(&f.f, off, n) }

// DropCache is DropRange for the whole file.
func (f *File) DropCache() { f.DropRange(0, 0) }

// Memory returns the bytes of memory that the machine has, 0 if the system does not say.
func Memory() int64 { return memory() }
