package torture

// mutant is a planted bug: a change of one place in the source, and a test that must fail for it.
type mutant struct {
	name string
	file string
	old  string // what is there, once in the file
	bug  string // what takes its place; mutated("name") is whether the bug is on
	test suspect
}

// suspect is a test that must fail.
type suspect struct {
	pkg   string
	run   string
	fault string // the only fault that TestSystemCallFails tries
}

var (
	byPower     = suspect{pkg: "internal/torture", run: "TestPowerLoss"}
	byKill      = suspect{pkg: "internal/torture", run: "TestKill"}
	byOpen      = suspect{pkg: "internal/torture", run: "TestDoubleOpen"}
	byUnread    = suspect{pkg: "blobovnicza", run: "TestUnreadable"}
	bySync      = suspect{pkg: "internal/durable", run: "Sync"}
	byStore     = suspect{pkg: "internal/durable", run: "TestStore"}
	byTreeModel = suspect{pkg: "fstree", run: "TestPowerLoss|TestModelSees|TestUncleanStop|TestFailedSync"}
	byTree      = suspect{pkg: "fstree", run: "TestConformance|TestPutHeals|TestFlipped|TestDamage"}
	bySmall     = suspect{pkg: "blobovnicza", run: "TestFailedCommit|TestConformance|TestFlippedByte|TestTorn|TestTruncated"}
	byCompact   = suspect{pkg: "blobovnicza", run: "TestCompactKeeps|TestCompactUndoes|TestPowerLossAtEveryStep|TestOpenProves"}
	byBolt      = suspect{pkg: "internal/bolt", run: "TestReplace|TestCrash|TestMarks|TestPowerLoss|TestCloseSyncs"}
	byIndex     = suspect{pkg: "metabase", run: "TestIndexed|TestSearchBesideIndexing|TestReopenWhileIndexing"}
	byModel     = suspect{pkg: "metabase", run: "TestRandom"}
	byRecord    = suspect{pkg: "metabase", run: "TestUnreadableRecord|TestFlip"}
	byGroup     = suspect{pkg: "internal/groupcommit", run: "Test"}
)

// byCall is a trial in which one system call fails.
func byCall(fault string) suspect {
	return suspect{pkg: "internal/torture", run: "TestSystemCallFails/new", fault: fault}
}

// mutants are all planted bugs.
var mutants = []mutant{
	{"drop-file-sync", "internal/durable/file.go",
		"\tif err == nil {\n\t\terr = datasync(&f.f)",
		"\tif err == nil && !mutated(\"drop-file-sync\") {\n\t\terr = datasync(&f.f)", byPower},
	{"drop-directory-sync", "internal/durable/dir.go",
		"if err := d.h.sync(); err != nil {",
		"if mutated(\"drop-directory-sync\") {\n\t\treturn nil\n\t}\n\tif err := d.h.sync(); err != nil {", byPower},
	{"drop-ancestor-sync", "internal/durable/dir.go",
		"\tif err := d.Sync(); err != nil {\n\t\treturn err\n\t}\n\tfor _, name := range fresh {",
		"\tif mutated(\"drop-ancestor-sync\") {\n\t\treturn nil\n\t}\n\tif err := d.Sync(); err != nil {\n\t\treturn err\n\t}\n\tfor _, name := range fresh {", byTreeModel},
	{"join-running-sync", "internal/durable/sync.go",
		"\tif s.next == nil {\n",
		"\tif mutated(\"join-running-sync\") && s.last != nil {\n\t\treturn s.last, false\n\t}\n\tif s.next == nil {\n", bySync},
	{"forget-failed-sync", "internal/durable/sync.go",
		"\ts.failed = err\n",
		"\tif !mutated(\"forget-failed-sync\") {\n\t\ts.failed = err\n\t}\n", bySync},
	{"retry-failed-sync", "internal/durable/file.go",
		"\tif err != nil {\n\t\terr = blobstor.Failed(pathError(\"sync\", f.name, err))",
		"\tif err != nil && mutated(\"retry-failed-sync\") {\n\t\terr = datasync(&f.f)\n\t}\n\tif err != nil {\n\t\terr = blobstor.Failed(pathError(\"sync\", f.name, err))", bySmall},
	{"ignore-short-write", "internal/durable/rawfile_linux.go",
		"func (f *sysFile) writeAt(p []byte, off int64) (int, error) {\n",
		"func (f *sysFile) writeAt(p []byte, off int64) (int, error) {\n\tif mutated(\"ignore-short-write\") {\n\t\t_, err := unix.Pwrite(f.fd, p, off)\n\t\treturn len(p), err\n\t}\n",
		byCall(`{"Call":"pwrite64","N":0,"Short":true,"Forever":true}`)},
	{"ignore-interruption", "internal/durable/handle_linux.go",
		"if err := call(); err != unix.EINTR {",
		"if err := call(); err != unix.EINTR || mutated(\"ignore-interruption\") {",
		byCall(`{"Call":"openat","N":30,"Errno":4}`)},
	{"leak-descriptor", "internal/durable/rawfile_linux.go",
		"\tif f.leave() {\n\t\treturn unix.Close(f.fd)",
		"\tif f.leave() && !mutated(\"leak-descriptor\") {\n\t\treturn unix.Close(f.fd)",
		byCall(`{"Call":"openat","N":100000,"Errno":5}`)},
	{"trust-dead-file-system", "internal/durable/handle_linux.go",
		"if err == unix.EIO {", "if err == unix.EIO && !mutated(\"trust-dead-file-system\") {",
		suspect{pkg: "internal/torture", run: "TestSyncAfterShutdown"}},
	{"no-lock", "internal/durable/lock_unix.go",
		"\thow := unix.LOCK_EX\n", "\tif mutated(\"no-lock\") {\n\t\treturn nil\n\t}\n\thow := unix.LOCK_EX\n", byOpen},
	{"lock-only-the-file", "internal/durable/lock_unix.go",
		"error { return lock(h, shared) }",
		"error {\n\tif mutated(\"lock-only-the-file\") {\n\t\treturn nil\n\t}\n\treturn lock(h, shared)\n}", byOpen},
	{"close-without-unlock", "internal/durable/store.go",
		"s.lock.Unlock(), s.lock.Close())",
		"func() error {\n\t\t\tif mutated(\"close-without-unlock\") {\n\t\t\t\treturn nil\n\t\t\t}\n\t\t\treturn s.lock.Unlock()\n\t\t}(), s.lock.Close())", byStore},
	{"exists-without-sync", "internal/durable/dir.go",
		"\tfor _, name := range fresh {\n\t\tif err := d.mkdir(name); err",
		"\tif h, err := d.h.sub(fresh[0]); err == nil && mutated(\"exists-without-sync\") {\n\t\th.close()\n\t\treturn nil\n\t}\n\tfor _, name := range fresh {\n\t\tif err := d.mkdir(name); err",
		suspect{pkg: "internal/durable", run: "TestMkdir"}},

	{"acknowledge-before-name", "fstree/put.go",
		"\terr := t.syncDir(dir)\n\tif err == nil {\n\t\tt.count.puts",
		"\tvar err error\n\tif !mutated(\"acknowledge-before-name\") {\n\t\terr = t.syncDir(dir)\n\t}\n\tif err == nil {\n\t\tt.count.puts", byPower},
	{"name-before-data", "fstree/put.go",
		"if err := b.sync(); err != nil {", "if mutated(\"name-before-data\") {\n\t} else if err := b.sync(); err != nil {", byTreeModel},
	{"trust-existing-name", "fstree/put.go",
		"\terr = t.verify(p)\n\tif errors.Is(err, blobstor.ErrCorrupt)",
		"\tif !mutated(\"trust-existing-name\") {\n\t\terr = t.verify(p)\n\t} else {\n\t\terr = nil\n\t}\n\tif errors.Is(err, blobstor.ErrCorrupt)", byTree},
	{"delete-without-sync", "fstree/layout.go",
		"\treturn true, t.syncDir(dir)\n",
		"\tif mutated(\"delete-without-sync\") {\n\t\treturn true, nil\n\t}\n\treturn true, t.syncDir(dir)\n", byPower},
	{"leak-name-lock", "fstree/put.go",
		"\tdefer t.names.unlock(p.addr)\n\tif err := t.name(temp, at, p); err != nil {\n",
		"\tdefer func() {\n\t\tif err == nil || !mutated(\"leak-name-lock\") {\n\t\t\tt.names.unlock(p.addr)\n\t\t}\n\t}()\n\tif err := t.name(temp, at, p); err != nil {\n",
		byCall(`{"Call":"linkat","N":14,"Errno":5,"Forever":true}`)},
	{"range-without-checksum", "fstree/blob.go",
		"if checksum(body) != sum {", "if checksum(body) != sum && !mutated(\"range-without-checksum\") {", byTree},
	{"stop-without-sync", "fstree/mark.go",
		"\tif unclean {\n", "\tif unclean && !mutated(\"stop-without-sync\") {\n", byTreeModel},

	{"acknowledge-before-sync", "blobovnicza/commit.go",
		"\tif l.tree.opts.NoSync {\n\t\tl.extend(f, end)",
		"\tif l.tree.opts.NoSync || mutated(\"acknowledge-before-sync\") {\n\t\tl.extend(f, end)", byPower},
	{"new-file-without-name", "blobovnicza/grow.go",
		"\tif !l.tree.opts.NoSync {\n\t\tif err := dir.Sync(); err != nil {\n\t\t\tl.giveUp(err)",
		"\tif !l.tree.opts.NoSync && !mutated(\"new-file-without-name\") {\n\t\tif err := dir.Sync(); err != nil {\n\t\t\tl.giveUp(err)", byCompact},
	{"resurrect-in-compaction", "blobovnicza/move.go",
		"\tif l.hasLost() {\n\t\treturn true, nil\n\t}\n\tfor i, older",
		"\tif mutated(\"resurrect-in-compaction\") {\n\t\treturn false, nil\n\t}\n\tif l.hasLost() {\n\t\treturn true, nil\n\t}\n\tfor i, older", byCompact},
	{"remove-unproven", "blobovnicza/open.go",
		"if err := errors.Join(all[len(all)-1].prove(), l.syncNames(dir)); err != nil {",
		"if mutated(\"remove-unproven\") {\n\t\t} else if err := errors.Join(all[len(all)-1].prove(), l.syncNames(dir)); err != nil {", byCompact},
	{"block-without-checksum", "blobovnicza/record.go",
		"if binary.BigEndian.Uint32(sums) != crc32.Update(h.crc, castagnoli, payload[:n]) {",
		"if !mutated(\"block-without-checksum\") && binary.BigEndian.Uint32(sums) != crc32.Update(h.crc, castagnoli, payload[:n]) {", bySmall},
	{"unreadable-is-torn", "blobovnicza/replay.go",
		"if err != nil && !notWhole(err) {", "if err != nil && !notWhole(err) && !mutated(\"unreadable-is-torn\") {", byUnread},
	{"forget-to-revoke", "blobovnicza/commit.go",
		"\tif err := l.w.Datasync(); err != nil {\n\t\treturn 0, l.revoke(err)\n\t}\n\tl.synced = end",
		"\tif err := l.w.Datasync(); err != nil {\n\t\tif mutated(\"forget-to-revoke\") {\n\t\t\treturn 0, err\n\t\t}\n\t\treturn 0, l.revoke(err)\n\t}\n\tl.synced = end", bySmall},
	{"replace-blindly", "blobovnicza/put.go",
		"o.found.newest.file == 0 && !isAnswer(err)",
		"o.found.newest.file == 0 && !isAnswer(err) && !mutated(\"replace-blindly\")", byUnread},

	{"commit-without-sync", "internal/bolt/handle.go",
		"NoSync:          o.NoSync,", "NoSync:          o.NoSync || mutated(\"commit-without-sync\"),", byPower},
	{"replace-without-sync", "internal/bolt/replace.go",
		"if err := db.store.Dir.Sync(); err != nil {",
		"if mutated(\"replace-without-sync\") {\n\t} else if err := db.store.Dir.Sync(); err != nil {", byBolt},
	{"wake-before-commit", "internal/groupcommit/groupcommit.go",
		"\town := group[0]\n\terr := c.run(group)\n\tfor _, op := range group {\n",
		"\town := group[0]\n\tif mutated(\"wake-before-commit\") {\n\t\tfor _, op := range group[1:] {\n\t\t\top.wake <- follower\n\t\t}\n\t}\n\terr := c.run(group)\n\tfor _, op := range group {\n\t\tif mutated(\"wake-before-commit\") {\n\t\t\tbreak\n\t\t}\n", byGroup},

	{"search-the-index-alone", "metabase/backlog.go",
		"\te.add(t.behind.now, from)\n", "\tif !mutated(\"search-the-index-alone\") {\n\t\te.add(t.behind.now, from)\n\t}\n", byIndex},
	{"search-an-old-backlog", "metabase/db.go",
		"if again = db.backlog.Load() != behind; again {", "if again = db.backlog.Load() != behind && !mutated(\"search-an-old-backlog\"); again {", byIndex},
	{"log-removed-early", "metabase/indexing.go",
		"\t\tif end < len(x.entries) {\n", "\t\tif end < len(x.entries) {\n\t\t\tif mutated(\"log-removed-early\") {\n\t\t\t\tx.removeLog(t)\n\t\t\t}\n", byIndex},
	{"index-what-is-gone", "metabase/backlog.go",
		"\tif len(b.unsure) == 0 {", "\tif len(b.unsure) == 0 || mutated(\"index-what-is-gone\") {", byModel},
	{"counters-drift", "metabase/put.go",
		"\tless.add(&by, -1)\n", "\tif !mutated(\"counters-drift\") {\n\t\tless.add(&by, -1)\n\t}\n", byModel},
	{"forget-the-tombstone", "metabase/status.go",
		"\tcase buried:\n\t\tv.state = Buried\n", "\tcase buried && !mutated(\"forget-the-tombstone\"):\n\t\tv.state = Buried\n", byModel},
	{"record-without-checksum", "metabase/encode.go",
		"if n < 0 || binary.BigEndian.Uint32(value[n:]) != sum(key, value[:n]) {",
		"if n < 0 || binary.BigEndian.Uint32(value[n:]) != sum(key, value[:n]) && !mutated(\"record-without-checksum\") {", byRecord},

	{"record-before-blob", "internal/torture/stack.go",
		"\tat, err := write(a)\n\tif err != nil || n.Bare() {\n",
		"\tif mutated(\"record-before-blob\") && !n.Bare() {\n\t\tif err := s.Index.Put(ctx, record(a, int64(n.Size()), \"\")); err != nil {\n\t\t\treturn err\n\t\t}\n\t}\n\tat, err := write(a)\n\tif err != nil || n.Bare() {\n", byKill},
	{"blob-before-mark", "internal/torture/stack.go",
		"\tvar err error\n\tif len(marked) > 0 {\n",
		"\tvar err error\n\tif mutated(\"blob-before-mark\") {\n\t\tfor _, a := range marked {\n\t\t\tif err := s.Blobs.Delete(ctx, a, \"\"); err != nil {\n\t\t\t\treturn err\n\t\t\t}\n\t\t}\n\t}\n\tif len(marked) > 0 {\n", byKill},
	{"leave-failed-write", "blobovnicza/commit.go",
		"\terr := l.w.Truncate(start)\n\tl.zeroed.Store(0)\n",
		"\tif mutated(\"leave-failed-write\") {\n\t\treturn cause\n\t}\n\terr := l.w.Truncate(start)\n\tl.zeroed.Store(0)\n", bySmall},
}
