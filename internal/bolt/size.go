package bolt

// Size returns the bytes of the file, and those of its free pages, which commits use before the file grows. What
// cannot be known, as after a failed commit or Close, is 0.
func (db *DB) Size() (file, free int64) {
	if db.enter() != nil {
		return 0, 0
	}
	defer db.calls.Done()
	h, err := db.use()
	if err != nil {
		return 0, 0
	}
	defer db.release(h)
	// The transaction keeps the freelist of the newest commit. Where a commit wrote a meta page while it was read, the
	// other one leads to an older freelist, perhaps gone: the next try finds the newest.
	err = h.view(db.names, func(*Tx) (err error) {
		for range 3 {
			if file, free, err = h.size(); err == nil {
				break
			}
		}
		return err
	})
	if err != nil {
		db.log.Warn("free pages not counted", "err", err)
	}
	return file, free
}

func (h *handle) size() (file, free int64, err error) {
	if file, err = h.file.Size(); err != nil {
		return 0, 0, err
	}
	now, _, err := readMetas(h.file, file)
	if err != nil {
		return file, 0, err
	}
	p := pages{h.file, *now}
	_, n, _, err := p.freeLen()
	return file, int64(n) * pageSize, err
}
