// Versions writes what stands above the versions of the documentation site: the
// list that the pages offer (versions.js), the redirection to the newest
// version (index.html) and the page of errors of all versions (404.html).
//
//	go run ./versions -base /dra-exporter/ FOLDER
//
// FOLDER has one folder for each version: main, and v1.2 for a release 1.2.x.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func main() {
	base := flag.String("base", "/", "`path` at which the site is published, with a slash at both ends")
	flag.Parse()
	if flag.NArg() != 1 || !strings.HasPrefix(*base, "/") || !strings.HasSuffix(*base, "/") {
		fmt.Fprintln(os.Stderr, "versions: give one folder, and a base that begins and ends with a slash")
		os.Exit(2) //nolint:forbidigo // this is a command
	}
	if err := write(flag.Arg(0), *base); err != nil {
		fmt.Fprintln(os.Stderr, "versions:", err)
		os.Exit(1) //nolint:forbidigo // this is a command
	}
}

// write writes the files above the versions in a folder. The base is the path of
// the folder on the server.
func write(folder, base string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("read the versions: %w", err)
	}
	names := versions(entries)
	if len(names) == 0 {
		return fmt.Errorf("%s has no folder main, nor one of a release such as v1.2", folder)
	}
	list, err := json.Marshal(names)
	if err != nil {
		return fmt.Errorf("encode the versions: %w", err)
	}
	files := map[string]string{
		"versions.js": fmt.Sprintf("globalThis.draVersions = %s;\n", list),
		"index.html":  redirection(names[0]),
		".nojekyll":   "", // GitHub Pages serves the files as they are
	}
	lost, err := os.ReadFile(filepath.Join(folder, names[0], "404.html"))
	switch {
	case errors.Is(err, fs.ErrNotExist): // a version without one
	case err != nil:
		return fmt.Errorf("read the page of errors: %w", err)
	default:
		// It is served at any address, so its relative links need a base.
		files["404.html"] = strings.Replace(string(lost), "<head>", fmt.Sprintf("<head>\n<base href=\"%s%s/\">", base, names[0]), 1)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// versions returns the names of the folders that are versions: the newest
// release first, and main, which is not released, last.
func versions(entries []fs.DirEntry) []string {
	type version struct {
		name         string
		major, minor int
	}
	release := regexp.MustCompile(`^v(\d+)\.(\d+)$`)
	var found []version
	for _, entry := range entries {
		parts := release.FindStringSubmatch(entry.Name())
		switch {
		case !entry.IsDir():
		case entry.Name() == "main":
			found = append(found, version{name: "main", major: -1})
		case parts != nil:
			major, _ := strconv.Atoi(parts[1]) // digits alone
			minor, _ := strconv.Atoi(parts[2])
			found = append(found, version{entry.Name(), major, minor})
		}
	}
	slices.SortFunc(found, func(a, b version) int {
		return slices.Compare([]int{b.major, b.minor}, []int{a.major, a.minor})
	})
	var names []string
	for _, version := range found {
		names = append(names, version.name)
	}
	return names
}

func redirection(to string) string {
	return fmt.Sprintf(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>dra-exporter</title>
<meta http-equiv="refresh" content="0; url=%[1]s/index.html">
</head>
<body><p><a href="%[1]s/index.html">The documentation of dra-exporter %[1]s</a></p></body>
</html>
`, to)
}
