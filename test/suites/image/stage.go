package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
)

// onHost is the base of stages in which programs of this machine run.
const onHost = "host"

// stage is a stage that is being built or has been built: its files and its
// settings.
type stage struct {
	build  *build
	root   string // folder of its files; on the host: of those that its steps created
	isHost bool
	config v1.Config
	args   map[string]string // in scope
}

// stage builds a stage and its bases, unless they have been built.
func (b *build) stage(ctx context.Context, number int) (*stage, error) {
	if built, done := b.stages[number]; done {
		return built, nil
	}
	s, err := b.begin(ctx, number)
	if err != nil {
		return nil, err
	}
	for _, command := range b.parsed[number].Commands {
		if err := s.execute(ctx, command); err != nil {
			return nil, fmt.Errorf("%s, in stage %d: %w", command.Name(), number, err)
		}
	}
	b.stages[number] = s
	return s, nil
}

// begin creates a stage from its base.
func (b *build) begin(ctx context.Context, number int) (*stage, error) {
	name, err := b.baseOf(number)
	if err != nil {
		return nil, err
	}
	s := &stage{build: b, root: filepath.Join(b.work, fmt.Sprint(number)), args: map[string]string{}}
	if err := os.Mkdir(s.root, 0o755); err != nil {
		return nil, err
	}
	if earlier, found := b.find(name); found && earlier < number {
		base, err := b.stage(ctx, earlier)
		if err != nil {
			return nil, err
		}
		s.isHost, s.config = base.isHost, *base.config.DeepCopy()
		return s, clone(base.root, s.root)
	}
	folder, known := b.bases[name]
	switch {
	case name == "scratch":
		return s, nil
	case !known:
		return nil, fmt.Errorf("no -base says what stands in the place of %s", name)
	case folder == onHost:
		s.isHost, s.config.Env = true, hostEnvironment()
		return s, nil
	default:
		return s, s.extract(folder)
	}
}

// extract reads a base image: rootfs has its files, and config.json, if it
// exists, its settings as in an image's configuration.
func (s *stage) extract(folder string) error {
	text, err := os.ReadFile(filepath.Join(folder, "config.json"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if err := json.Unmarshal(text, &s.config); err != nil {
			return fmt.Errorf("read %s: %w", folder, err)
		}
	}
	return clone(filepath.Join(folder, "rootfs"), s.root)
}

// clone copies the contents of a folder, with owners, modes and links.
func clone(from, to string) error {
	if out, err := exec.Command("cp", "--archive", "--no-target-directory", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("copy %s: %w: %s", from, err, out)
	}
	return nil
}

// execute executes one step. It returns an error for instructions that it does
// not support.
func (s *stage) execute(ctx context.Context, command instructions.Command) error {
	if arg, is := command.(*instructions.ArgCommand); is {
		return s.build.declare(arg, s.args, s.build.global)
	}
	if c, is := command.(instructions.SupportsSingleWordExpansion); is {
		if err := c.Expand(expander(s.scope())); err != nil {
			return err
		}
	}
	switch c := command.(type) {
	case *instructions.RunCommand:
		return s.run(ctx, c)
	case *instructions.CopyCommand:
		return s.copy(ctx, c)
	case *instructions.WorkdirCommand:
		s.config.WorkingDir = path.Join("/", s.config.WorkingDir, c.Path)
		if path.IsAbs(c.Path) {
			s.config.WorkingDir = path.Clean(c.Path)
		}
		return os.MkdirAll(filepath.Join(s.root, s.config.WorkingDir), 0o755)
	case *instructions.LabelCommand:
		if s.config.Labels == nil {
			s.config.Labels = map[string]string{}
		}
		for _, label := range c.Labels {
			s.config.Labels[label.Key] = label.Value
		}
	case *instructions.EnvCommand:
		for _, variable := range c.Env {
			s.config.Env = append(s.config.Env, variable.Key+"="+variable.Value)
		}
	case *instructions.UserCommand:
		s.config.User = c.User
	case *instructions.ExposeCommand:
		if s.config.ExposedPorts == nil {
			s.config.ExposedPorts = map[string]struct{}{}
		}
		for _, port := range c.Ports {
			s.config.ExposedPorts[port+"/tcp"] = struct{}{}
		}
	case *instructions.EntrypointCommand:
		if c.PrependShell {
			return errors.New("the image has no shell: write it as a JSON array")
		}
		s.config.Entrypoint = slices.Clone(c.CmdLine)
	default:
		return errors.New("this program does not know how")
	}
	return nil
}

// scope returns the values of $NAME: the arguments, which the environment
// overrides.
func (s *stage) scope() map[string]string {
	scope := maps.Clone(s.args)
	for _, variable := range s.config.Env {
		key, value, _ := strings.Cut(variable, "=")
		scope[key] = value
	}
	return scope
}
