package torture

import (
	"context"
	"fmt"
	"os"
	"testing"
)

const childEnv = "GRANARY_TORTURE_CHILD"

// children are what the test binary can be instead of tests, by the value of childEnv.
var children = map[string]func() error{"driver": Main}

// TestMain turns the test binary into a child if it is told so.
func TestMain(m *testing.M) {
	if child := children[os.Getenv(childEnv)]; child != nil {
		if err := child(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if err := results.write(os.Getenv("GRANARY_TORTURE_TABLE")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

var ctx = context.Background()

// tier says how much is done: by plain go test, by CI (Tier A, GRANARY_TORTURE=A) and before a release (Tier B).
type tier int

const (
	plain tier = iota
	tierA
	tierB
)

func currentTier() tier {
	return map[string]tier{"A": tierA, "B": tierB}[os.Getenv("GRANARY_TORTURE")]
}

// amount returns how much of something this tier does; short mode makes plain a little less.
func amount(few, a, b int) int {
	n := []int{few, a, b}[currentTier()]
	if testing.Short() {
		n = max(1, n/3)
	}
	return n
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
