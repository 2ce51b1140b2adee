package report

import (
	"flag"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	flag.Bool("update", false, "write the golden texts")
	flag.Parse()
	os.Exit(m.Run())
}
