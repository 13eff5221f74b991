package durable

// ReadVec fills all parts, one after the other, from off on. Less is an error, io.EOF at the end of the file. One
// call reads a record's ends into a scratch buffer and its middle straight to where the caller wants it.
func (f *File) ReadVec(parts [][]byte, off int64) error {
	if err := f.o.before(OpRead, f.d, f.name, f); err != nil {
		return err
	}
	if err := f.f.readVec(parts, off); err != nil {
		return err
	}
	f.o.after(OpRead, f.d, f.name, f)
	return nil
}

// readEach is readVec with a call for each part.
func (f *sysFile) readEach(parts [][]byte, off int64) error {
	for _, p := range parts {
		if n, err := f.readAt(p, off); n < len(p) {
			return err
		}
		off += int64(len(p))
	}
	return nil
}
