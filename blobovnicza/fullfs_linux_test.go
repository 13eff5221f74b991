package blobovnicza

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/granary-store/granary/blobstor"
	"golang.org/x/sys/unix"
)

// ext4FS makes and mounts an ext4 of that size in a file, which is unmounted when the test ends.
func ext4FS(t *testing.T, size int64, options ...string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting needs root")
	}
	image := filepath.Join(smallFS(t, fmt.Sprint(size+1<<20)), "image") // in memory: the test is not about syncs
	check(t, os.WriteFile(image, nil, 0o600))
	check(t, os.Truncate(image, size))
	dir := t.TempDir()
	for _, args := range [][]string{
		append([]string{"mkfs.ext4", "-q", "-F", "-m", "0"}, append(options, image)...),
		{"mount", "-o", "loop", image, dir},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("no ext4 here: %v: %v\n%s", args, err, out)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	return dir
}

// greedy is another program: it takes all that is free, also what becomes free, until released.
func greedy(t *testing.T, grow func() error) func() (release func()) {
	return func() (release func()) {
		full, done := make(chan struct{}), make(chan struct{})
		var once sync.Once
		var running sync.WaitGroup
		running.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := grow(); err != nil {
					if !errors.Is(err, unix.ENOSPC) {
						t.Error(err)
					}
					once.Do(func() { close(full) })
					time.Sleep(50 * time.Microsecond)
				}
			}
		})
		<-full
		return func() { close(done); running.Wait() }
	}
}

// takeBlocks is a program with a file that grows as long as there are blocks.
func takeBlocks(t *testing.T, path string) func() func() {
	block := make([]byte, 4096)
	grow := func() error {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		_, err = f.Write(block)
		return errors.Join(err, f.Close())
	}
	return withRemoval(greedy(t, grow), func() { check(t, os.RemoveAll(path)) })
}

// takeInodes is a program that makes files as long as there are inodes.
func takeInodes(t *testing.T, dir string) func() func() {
	n := 0
	grow := func() error {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		n++
		f, err := os.Create(filepath.Join(dir, fmt.Sprint(n)))
		if err != nil {
			return err
		}
		return f.Close()
	}
	return withRemoval(greedy(t, grow), func() { check(t, os.RemoveAll(dir)) })
}

func withRemoval(take func() func(), remove func()) func() func() {
	return func() func() {
		release := take()
		return func() { release(); remove() }
	}
}

// A store on a disk that is full again and again.
func TestFullDisk(t *testing.T) {
	t.Run("tmpfs", func(t *testing.T) {
		dir := smallFS(t, "4m")
		fullRounds(t, &fullDisk{dir: filepath.Join(dir, "store"), largest: 100 << 10,
			take: takeBlocks(t, filepath.Join(dir, "filler"))}, 50)
	})
	t.Run("tmpfs leaves", func(t *testing.T) {
		dir := smallFS(t, "4m")
		fullRounds(t, &fullDisk{dir: filepath.Join(dir, "store"), opts: Options{Width: 4, Depth: 1}, largest: 100 << 10,
			take: takeBlocks(t, filepath.Join(dir, "filler"))}, 50)
	})
	t.Run("ext4", func(t *testing.T) {
		dir := ext4FS(t, 16<<20, "-b", "4096") // as real disks have: a directory that grows needs a block
		fullRounds(t, &fullDisk{dir: filepath.Join(dir, "store"), largest: 200 << 10,
			take: takeBlocks(t, filepath.Join(dir, "filler"))}, 50)
	})
	t.Run("ext4 inodes", func(t *testing.T) {
		dir := ext4FS(t, 4<<20, "-N", "64")
		others := takeInodes(t, filepath.Join(dir, "others"))
		fullRounds(t, &fullDisk{dir: filepath.Join(dir, "store"), opts: Options{FileSize: 128 << 10}, largest: 30 << 10,
			take: others}, 50)
	})
}

// A process that may not write large files stores what fits into small ones, and refuses what fits in none.
func TestFileSizeLimit(t *testing.T) {
	const variable = "GRANARY_FILE_LIMIT"
	if os.Getenv(variable) == "" {
		args := []string{"-test.run=^TestFileSizeLimit$"}
		if testing.Short() {
			args = append(args, "-test.short")
		}
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env = append(os.Environ(), variable+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	dir := memoryDir(t)
	var old unix.Rlimit
	check(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &old))
	check(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 300 << 10, Max: old.Max}))
	defer unix.Setrlimit(unix.RLIMIT_FSIZE, &old)
	fullRounds(t, &fullDisk{dir: dir, largest: 400 << 10}, 50)
}

// A store that is opened while the disk is full serves reads and deletes, and takes puts again when there is room.
func TestOpenOnFullDisk(t *testing.T) {
	dir := smallFS(t, "4m")
	d := &fullDisk{t: t, dir: filepath.Join(dir, "store"), largest: 50 << 10, stored: map[int]blobstor.Location{}}
	d.rng = newRand()
	d.s = mustOpen(t, d.dir, d.opts)
	d.fill()
	release := takeBlocks(t, filepath.Join(dir, "filler"))()
	for range 5 {
		d.reopen()
		for n := range d.stored {
			check(t, d.s.Delete(ctx, addrOf(n), ""))
			delete(d.stored, n)
			break
		}
	}
	release()
	d.deleteHalf(false)
	check(t, d.s.Compact(ctx))
	d.putsGoOn()
	d.verify()
}
