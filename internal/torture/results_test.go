package torture

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// results are the rows of the table in RELIABILITY.md that this run has to tell.
var results table

type table struct {
	mu   sync.Mutex
	rows []string
}

// report adds what a test has done to the table, when it ends. Row is the number in RELIABILITY.md.
func report(t *testing.T, row string, what func() string) {
	t.Helper()
	begin := time.Now()
	t.Cleanup(func() {
		if t.Skipped() {
			return
		}
		verdict := "no violation"
		if t.Failed() {
			verdict = "FAILED"
		}
		line := fmt.Sprintf("| %s | %s | %s | %d s |", row, what(), verdict, int(time.Since(begin).Seconds()+0.5))
		t.Log(line)
		results.add(line)
	})
}

func (r *table) add(row string) {
	r.mu.Lock()
	r.rows = append(r.rows, row)
	r.mu.Unlock()
}

const (
	tableBegin = "<!-- table of make torture: begin -->\n"
	tableEnd   = "<!-- table of make torture: end -->\n"
)

// write puts the table in its place in a file.
func (r *table) write(file string) error {
	if file == "" || len(r.rows) == 0 {
		return nil
	}
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	head, rest, ok := bytes.Cut(old, []byte(tableBegin))
	_, tail, ok2 := bytes.Cut(rest, []byte(tableEnd))
	if !ok || !ok2 {
		return fmt.Errorf("%s has no place for the table", file)
	}
	slices.Sort(r.rows)
	text := "| row | done | found | took |\n|---|---|---|---|\n" + strings.Join(r.rows, "\n") + "\n"
	return os.WriteFile(file, slices.Concat(head, []byte(tableBegin), []byte(text), []byte(tableEnd), tail), 0o644)
}
