package sysfs

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/source"
)

func TestNumber(t *testing.T) {
	var files Files
	path := filepath.Join(t.TempDir(), "value")
	for text, want := range map[string]float64{
		"0\n":                              0,
		"37":                               37,
		"  54000 \n":                       54000,
		"-5000\n":                          -5000,
		"18446744073709551615\n":           math.MaxUint64,
		"-9223372036854775808\n":           math.MinInt64,
		strings.Repeat("0", 30):            0,
		"1\n" + strings.Repeat("\n", 5000): 1, // one read gives a page
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := files.Number(path); got != want || err != nil {
			t.Errorf("%.20q is %v (%v), want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "\n", "x", "1.5", "0x10", "1e3", "18446744073709551616", "-9223372036854775809", "12 W", "\xff", strings.Repeat("z", 5000)} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := files.Number(path)
		var at *fs.PathError
		if !errors.As(err, &at) || at.Path != path || Absent(err) || len(err.Error()) > len(path)+100 {
			t.Errorf("%.20q: %v", text, err)
		}
	}
	if err := os.WriteFile(path, []byte("N/A (no PMA)\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := files.Number(path); !Absent(err) {
		t.Errorf("what is not available: %v", err)
	}
}

func TestFailuresToRead(t *testing.T) {
	var files Files
	folder := t.TempDir()
	if _, err := files.Text(filepath.Join(folder, "none")); !Absent(err) {
		t.Errorf("no file: %v", err)
	}
	if _, err := files.Text(folder); Absent(err) || !errors.Is(err, syscall.EISDIR) {
		t.Errorf("a folder: %v", err)
	}
	if _, err := files.Bytes("/proc/self/mem"); Absent(err) || !errors.Is(err, syscall.EIO) {
		t.Errorf("a file that cannot be read: %v", err)
	}
	if os.Getuid() == 0 {
		return // root may read everything
	}
	path := filepath.Join(folder, "secret")
	if err := os.WriteFile(path, nil, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := files.Text(path); source.ReasonOf(err) != source.ReasonPermission {
		t.Errorf("a file without permission: %v", err)
	}
}

// A pipe or another irregular file in the place of a file or a folder does not
// block the reader. When the file is back, it is read again.
func TestIrregularFiles(t *testing.T) {
	var files Files
	for name, plant := range map[string]func(path string) error{
		"a pipe":   func(path string) error { return syscall.Mkfifo(path, 0o644) },
		"a device": func(path string) error { return os.Symlink("/dev/zero", path) },
		"a pipe behind links": func(path string) error {
			return errors.Join(syscall.Mkfifo(path+".pipe", 0o644), os.Symlink(path+".pipe", path))
		},
	} {
		path := filepath.Join(t.TempDir(), "value")
		if err := plant(path); err != nil {
			t.Fatal(err)
		}
		if _, err := files.Number(path); source.ReasonOf(err) != source.ReasonInvalid || Absent(err) || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Names(path); !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("%s as a folder: %v", name, err)
		}
		if err := errors.Join(os.Remove(path), os.WriteFile(path, []byte("7\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
		if got, err := files.Number(path); got != 7 || err != nil {
			t.Errorf("after %s: %v (%v)", name, got, err)
		}
	}
	loop := filepath.Join(t.TempDir(), "loop")
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	if _, err := files.Text(loop); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a loop: %v", err)
	}
}

func TestNames(t *testing.T) {
	folder := t.TempDir()
	if names, err := Names(folder); len(names) != 0 || err != nil {
		t.Errorf("an empty folder: %v (%v)", names, err)
	}
	for i := range maxNames + 1 {
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%05d", maxNames-i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Names(folder); source.ReasonOf(err) != source.ReasonResourceExhausted || !strings.Contains(err.Error(), "the limit of 10000") {
		t.Errorf("a flood: %v", err)
	}
	if err := os.Remove(filepath.Join(folder, "00003")); err != nil {
		t.Fatal(err)
	}
	if names, err := Names(folder); len(names) != maxNames || names[0] != "00000" || names[3] != "00004" || err != nil {
		t.Errorf("%d names (%v)", len(names), err)
	}
}

func TestAbsences(t *testing.T) {
	for code, want := range map[syscall.Errno]bool{
		syscall.ENOENT: true, syscall.EOPNOTSUPP: true, syscall.ENODATA: true, syscall.EINVAL: true, 524: true,
		syscall.EIO: false, syscall.EACCES: false, syscall.EPERM: false, syscall.EAGAIN: false, syscall.EBUSY: false, syscall.ENODEV: false,
	} {
		err := fmt.Errorf("read: %w", &fs.PathError{Op: "read", Path: "x", Err: code})
		if Absent(err) != want {
			t.Errorf("%v is an absence: %t", err, !want)
		}
	}
	if Absent(nil) {
		t.Error("nothing is an absence")
	}
}

// A read that the driver refuses is distinguished from a missing permission.
func TestRefusals(t *testing.T) {
	refusal := &fs.PathError{Op: "read", Path: "x", Err: refused(syscall.EPERM)}
	if source.ReasonOf(refusal) != source.ReasonDeviceError || !strings.Contains(refusal.Error(), "refuses") {
		t.Errorf("%q: %v", source.ReasonOf(refusal), refusal)
	}
	if err := refused(syscall.EIO); err != syscall.EIO { //nolint:errorlint // it must not be wrapped
		t.Errorf("another error: %v", err)
	}
}

func FuzzParseNumber(f *testing.F) {
	for _, seed := range []string{"0", "-1", "18446744073709551615", "N/A (no PMA)", "1_000", "", "\xff\xfe", "+7", "9e9"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		value, err := ParseNumber(text)
		if err == nil && (math.IsNaN(value) || math.IsInf(value, 0)) {
			t.Errorf("%q is %v", text, value)
		}
		if err != nil && len(err.Error()) > 300 {
			t.Errorf("%q makes a message of %d bytes", text, len(err.Error()))
		}
	})
}
