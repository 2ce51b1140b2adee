package demo_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/internal/demo"
)

func TestCloseLeavesNothingBehind(t *testing.T) {
	for name, options := range map[string]demo.Options{"its own directory": {}, "another's": {Dir: t.TempDir()}} {
		s, err := demo.Start(context.Background(), options)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() { ended <- s.Run(context.Background()) }()
		eventually(t, func() string {
			if files, err := os.ReadDir(s.CDIDir()); err != nil || len(files) == 0 {
				return "CDI files"
			}
			return ""
		})
		go s.Close()
		if err := <-ended; err != nil {
			t.Errorf("%s: Run ends with %v", name, err)
		}
		s.Close()
		if err := s.Run(context.Background()); err != nil {
			t.Errorf("%s: Run after Close ends with %v", name, err)
		}
		for _, path := range []string{s.KubeletSocket(), s.CDIDir()} {
			if _, err := os.Lstat(path); !os.IsNotExist(err) {
				t.Errorf("%s: %s is left behind: %v", name, path, err)
			}
		}
		_, err = os.Stat(filepath.Dir(s.KubeletSocket()))
		if given := options.Dir != ""; given != (err == nil) {
			t.Errorf("%s: is there after the end: %v", name, err)
		}
	}
}

func TestStartErrors(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("x", 120))
	if _, err := demo.Start(context.Background(), demo.Options{Dir: long}); err == nil || !strings.Contains(err.Error(), "TMPDIR") {
		t.Errorf("a path that is too long for a socket gives %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := demo.Start(context.Background(), demo.Options{Dir: file}); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a file in place of a directory gives %v", err)
	}
}
