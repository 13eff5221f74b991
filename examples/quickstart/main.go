// Quickstart stores a directory of files, every file an object, reads all of it back, removes a tenth, opens the
// store again, and fails if one byte differs. Without flags it takes the source tree of Go's standard library
// and a temporary directory:
//
//	go run ./examples/quickstart
//
// The files must not change while it runs. Read store.go first: that is all it takes to have a store.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("quickstart: ")
	source := flag.String("dir", "", "store this directory instead of Go's standard library")
	writers := flag.Int("writers", 64, "number of concurrent writers and readers")
	keep := flag.Bool("keep", false, "keep the store and say where it is")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *source, *writers, *keep); err != nil {
		log.Fatal(err)
	}
}

// run does the whole of it in a temporary directory.
func run(ctx context.Context, source string, writers int, keep bool) error {
	dir, err := os.MkdirTemp("", "granary-quickstart-")
	if err != nil {
		return err
	}
	if keep {
		fmt.Println("the store stays in", dir)
	} else {
		defer os.RemoveAll(dir)
	}
	if source == "" {
		if source, err = standardLibrary(ctx); err != nil {
			return err
		}
	}
	t := tour{dir: dir, writers: writers, progress: os.Stderr}
	if err := t.run(ctx, source); err != nil {
		return err
	}
	t.summarize(os.Stdout)
	return nil
}

// standardLibrary asks the go command, since a program need not be where it was built.
func standardLibrary(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w (use -dir)", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "src"), nil
}
