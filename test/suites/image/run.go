package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
)

// enter changes the root to the stage's folder ($1), with the machine's
// programs and libraries mounted read-only, and with the pairs of folder and
// place that follow; then it runs the command ($3) in the working folder ($2).
const enter = `set -eu
root=$1 folder=$2 command=$3
shift 3
for name in usr bin sbin lib lib64 etc; do
	[ -e "/$name" ] || continue
	if [ -L "/$name" ]; then
		[ -L "$root/$name" ] || cp -P "/$name" "$root/$name"
	else
		mkdir -p "$root/$name"
		mount --bind "/$name" "$root/$name"
		mount -o remount,bind,ro "$root/$name"
	fi
done
mkdir -p "$root/dev" "$root/proc" "$root/tmp"
mount --rbind /dev "$root/dev"
mount --rbind /proc "$root/proc"
while [ $# -gt 0 ]; do
	mkdir -p "$root/$2"
	mount --bind "$1" "$root/$2"
	shift 2
done
exec chroot "$root" /bin/sh -c 'cd "$0" && exec /bin/sh -c "$1"' "$folder" "$command"
`

// run executes RUN, in a mount namespace and root of its own. Of the
// machine's files it can write only those of the caches, which it shares with
// the machine.
func (s *stage) run(ctx context.Context, c *instructions.RunCommand) error {
	if !s.isHost {
		return errors.New("the stage has no programs: only stages whose base is the host do")
	}
	if !c.PrependShell || len(c.CmdLine) != 1 || len(c.Files) > 0 {
		return errors.New("only shell commands without here-documents are known")
	}
	args := []string{
		"--mount", "--propagation", "private", "/bin/sh", "-c", enter, "enter",
		s.root, filepath.Join("/", s.config.WorkingDir), c.CmdLine[0],
	}
	for _, mount := range instructions.GetMounts(c) {
		if mount.Type != instructions.MountTypeCache {
			return fmt.Errorf("a mount of type %s is not known", mount.Type)
		}
		cache, err := hostCache(mount.Target)
		if err != nil {
			return err
		}
		args = append(args, cache, mount.Target)
	}
	command := exec.CommandContext(ctx, "unshare", args...)
	command.Env = s.environment()
	command.Stdout, command.Stderr = s.build.log, s.build.log
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s: %w", c.CmdLine[0], err)
	}
	return nil
}

// environment returns the environment of RUN: the stage's, its arguments, and
// this machine's settings for the module proxy.
func (s *stage) environment() []string {
	env := s.config.Env
	for _, name := range []string{"GOPROXY", "GONOSUMDB", "GOSUMDB", "GONOPROXY", "GOPRIVATE", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE"} {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	for key, value := range s.args {
		env = append(env, key+"="+value)
	}
	return env
}

// hostEnvironment returns the environment of the golang images.
func hostEnvironment() []string {
	return []string{
		"PATH=/go/bin:/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"GOPATH=/go", "GOTOOLCHAIN=local", "HOME=/root",
	}
}

// hostCache returns the folder of this machine that is used for a cache mount.
func hostCache(target string) (string, error) {
	variable := map[string]string{"/go/pkg/mod": "GOMODCACHE", "/root/.cache/go-build": "GOCACHE"}[target]
	if variable == "" {
		return "", fmt.Errorf("the cache %s is not known", target)
	}
	out, err := exec.Command("go", "env", variable).Output()
	if err != nil {
		return "", fmt.Errorf("ask Go for %s: %w", variable, err)
	}
	folder := strings.TrimSpace(string(out))
	return folder, os.MkdirAll(folder, 0o755)
}
