package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerfile/shell"
)

// build is one build of a Dockerfile. It is not safe for concurrent use.
type build struct {
	context string            // folder
	target  string            // name of a stage, or empty
	arch    string            // of the image
	args    map[string]string // --build-arg
	bases   map[string]string // image → folder, or host
	log     io.Writer         // output of RUN

	work   string // folder for the stages' files
	parsed []instructions.Stage
	global map[string]string // ARG before the first FROM
	stages map[int]*stage    // stages that have been built
}

func hostArch() string { return runtime.GOARCH }

// platform returns the arguments that every build has.
func (b *build) platform() map[string]string {
	return map[string]string{
		"BUILDARCH": hostArch(), "BUILDPLATFORM": "linux/" + hostArch(), "BUILDOS": "linux",
		"TARGETARCH": b.arch, "TARGETPLATFORM": "linux/" + b.arch, "TARGETOS": "linux",
	}
}

// read parses the Dockerfile.
func (b *build) read() error {
	file, err := os.Open(filepath.Join(b.context, "Dockerfile"))
	if err != nil {
		return err
	}
	defer file.Close()
	tree, err := parser.Parse(file)
	if err != nil {
		return fmt.Errorf("parse the Dockerfile: %w", err)
	}
	stages, meta, err := instructions.Parse(tree.AST, nil)
	if err != nil {
		return fmt.Errorf("parse the Dockerfile: %w", err)
	}
	b.parsed, b.global = stages, b.platform()
	for _, arg := range meta {
		if err := b.declare(&arg, b.global, nil); err != nil {
			return err
		}
	}
	return nil
}

// declare adds an ARG to the scope: the build's argument, or its default, or
// the value of the outer scope.
func (b *build) declare(arg *instructions.ArgCommand, scope, outer map[string]string) error {
	if err := arg.Expand(expander(scope)); err != nil {
		return err
	}
	for _, pair := range arg.Args {
		given, isGiven := b.args[pair.Key]
		inherited, isInherited := outer[pair.Key]
		switch {
		case isGiven:
			scope[pair.Key] = given
		case pair.Value != nil:
			scope[pair.Key] = *pair.Value
		case isInherited:
			scope[pair.Key] = inherited
		}
	}
	return nil
}

// expander returns a function that replaces $NAME as in a Dockerfile.
func expander(scope map[string]string) instructions.SingleWordExpander {
	var env []string
	for key, value := range scope {
		env = append(env, key+"="+value)
	}
	lex := shell.NewLex('\\')
	return func(word string) (string, error) {
		expanded, _, err := lex.ProcessWord(word, shell.EnvsFromSlice(env))
		return expanded, err
	}
}

// find returns the number of a stage by its name, its number as a text, or, for
// the empty name, the last one.
func (b *build) find(name string) (int, bool) {
	if name == "" {
		return len(b.parsed) - 1, len(b.parsed) > 0
	}
	for i := range b.parsed {
		if strings.EqualFold(b.parsed[i].Name, name) {
			return i, true
		}
	}
	number, err := strconv.Atoi(name)
	return number, err == nil && number >= 0 && number < len(b.parsed)
}

// baseOf returns the base of a stage: an earlier stage's name, or an image.
func (b *build) baseOf(number int) (string, error) {
	base, err := expander(b.global)(b.parsed[number].BaseName)
	if err != nil {
		return "", fmt.Errorf("expand FROM %s: %w", b.parsed[number].BaseName, err)
	}
	return base, nil
}

// externalBases returns the images on which the target is based, sorted.
func (b *build) externalBases() ([]string, error) {
	first, found := b.find(b.target)
	if !found {
		return nil, fmt.Errorf("there is no stage %q", b.target)
	}
	images, visited := map[string]bool{}, map[int]bool{}
	for todo := []int{first}; len(todo) > 0; {
		number := todo[0]
		todo = todo[1:]
		if visited[number] {
			continue
		}
		visited[number] = true
		base, err := b.baseOf(number)
		if err != nil {
			return nil, err
		}
		names := []string{base}
		for _, command := range b.parsed[number].Commands {
			if c, is := command.(*instructions.CopyCommand); is && c.From != "" {
				names = append(names, c.From)
			}
		}
		for _, name := range names {
			if stage, isStage := b.find(name); isStage {
				todo = append(todo, stage)
			} else if name != "scratch" {
				images[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(images)), nil
}

// image builds the target and writes it to a file.
func (b *build) image(ctx context.Context, name, out string) error {
	var err error
	if b.context, err = filepath.Abs(b.context); err != nil {
		return err
	}
	if b.work, err = os.MkdirTemp("", "image-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.work)
	number, found := b.find(b.target)
	if !found {
		return fmt.Errorf("there is no stage %q", b.target)
	}
	built, err := b.stage(ctx, number)
	if err != nil {
		return err
	}
	return built.pack(name, b.arch, out)
}
