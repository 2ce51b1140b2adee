package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// verifyFlags are the flags that stand for the workflow's identity: a key, no
// transparency log, and no root of trust, for which cosign would ask a server.
func (r *rehearsal) verifyFlags(key string) []string {
	return []string{"--key=" + r.key(key) + ".pub", "--insecure-ignore-tlog=true", "--trusted-root=" + r.noRoot()}
}

// verify runs the documented commands in a folder with the release's files, as a
// user who has downloaded them.
func (r *rehearsal) verify(ctx context.Context) error {
	d, err := readDocument(r.path(verifyDocument))
	if err != nil {
		return err
	}
	for _, command := range d.commands {
		r.logf("$ %s", command)
		output, err := r.check(ctx, r.path("dist", "release"), script([]string{command}, r.version, r.release.registry, r.verifyFlags("signer")))
		if err != nil {
			return fmt.Errorf("%w\n%s", err, output)
		}
		r.logf("%s", firstLines(output, 6))
	}
	return nil
}

// check runs a script in a folder with cosign on PATH, and returns its output.
func (r *rehearsal) check(ctx context.Context, folder, text string) (string, error) {
	command := r.command(ctx, "bash", "-c", text)
	command.Dir = folder
	command.Env = append(command.Env, "PATH="+filepath.Dir(r.cosign())+":"+os.Getenv("PATH"))
	output, err := command.CombinedOutput()
	return string(output), err
}

// firstLines returns the lines with words, shortened.
func firstLines(text string, most int) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || len(lines) == most {
			continue
		}
		if len(line) > 200 {
			line = line[:200] + "…"
		}
		lines = append(lines, "        "+line)
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// forgery is something that a documented command must refuse.
type forgery struct {
	name     string
	commands string   // part of the commands that are tried
	version  string   // that the commands are for
	signer   string   // key that they expect
	file     string   // of the release, to which a line is added first
	words    []string // one of which each command must say, so that it did not fail for another reason
}

func (r *rehearsal) forgeries() []forgery {
	unsigned := "0.0.0-unsigned"
	return []forgery{
		{name: "another key", commands: "cosign verify", version: r.version, signer: "other-signer",
			words: []string{"no matching signatures", "no matching attestations", "failed to verify signature", "invalid signature"}},
		{name: "images without a signature", commands: "/dra-exporter:v$VERSION", version: unsigned, signer: "signer",
			words: []string{"no signatures found", "no matching signatures", "no matching attestations"}},
		{name: "changed checksums", commands: "cosign verify-blob", version: r.version, signer: "signer", file: "sha256sums.txt",
			words: []string{"failed to verify signature", "invalid signature"}},
		{name: "a changed archive", commands: "sha256sum --check", version: r.version, signer: "signer", file: "dra-exporter-" + r.version + ".tgz",
			words: []string{"did NOT match"}},
	}
}

// refuse runs the documented commands on forgeries. Each must fail, and say that
// it is the signature or the sum that is wrong.
func (r *rehearsal) refuse(ctx context.Context) error {
	d, err := readDocument(r.path(verifyDocument))
	if err != nil {
		return err
	}
	if err := r.pushUnsigned(ctx); err != nil {
		return err
	}
	for _, f := range r.forgeries() {
		if err := r.refuseOne(ctx, f, d.commands); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

// pushUnsigned pushes images that differ from the released ones, because a
// signature is of a digest, under tags of their own.
func (r *rehearsal) pushUnsigned(ctx context.Context) error {
	for _, variant := range slices.Sorted(maps.Keys(variants())) {
		image, err := tarball.ImageFromPath(filepath.Join(r.imageFolder(), variant+".tar"), nil)
		if err != nil {
			return err
		}
		config, err := image.ConfigFile()
		if err != nil {
			return err
		}
		config = config.DeepCopy()
		config.Author = "unsigned"
		if image, err = mutate.ConfigFile(image, config); err != nil {
			return err
		}
		if _, err := push(ctx, r.image("v0.0.0-unsigned"+variants()[variant]), image); err != nil {
			return err
		}
	}
	return nil
}

func (r *rehearsal) refuseOne(ctx context.Context, f forgery, commands []string) error {
	folder := filepath.Join(r.work, "forged")
	defer os.RemoveAll(folder)
	if err := os.CopyFS(folder, os.DirFS(r.path("dist", "release"))); err != nil {
		return err
	}
	if f.file != "" {
		if err := appendTo(filepath.Join(folder, f.file), "\n"); err != nil {
			return err
		}
	}
	tried := 0
	for _, command := range commands {
		if !strings.Contains(command, f.commands) {
			continue
		}
		tried++
		output, err := r.check(ctx, folder, script([]string{command}, f.version, r.release.registry, r.verifyFlags(f.signer)))
		if err == nil {
			return fmt.Errorf("%s accepts it:\n%s", command, output)
		}
		if !slices.ContainsFunc(f.words, func(words string) bool { return strings.Contains(output, words) }) {
			return fmt.Errorf("%s fails for another reason:\n%s", command, output)
		}
		r.logf("refused: %s: %s", f.name, command)
	}
	if tried == 0 {
		return errors.New("no documented command is tried on it")
	}
	return nil
}

func appendTo(file, text string) error {
	before, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(bytes.Clone(before), text...), 0o600)
}
