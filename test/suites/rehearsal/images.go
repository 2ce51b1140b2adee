package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// variants are the images of a release: the file of each digest, and the suffix
// of its tag.
func variants() map[string]string { return map[string]string{"glibc": "", "static": "-static"} }

// buildImages builds the images by the steps of the Dockerfile, for this
// architecture. The test of test/suites/image does it, and checks what is in them.
func (r *rehearsal) buildImages(ctx context.Context) error {
	if err := os.MkdirAll(r.imageFolder(), 0o755); err != nil {
		return err
	}
	command := r.command(ctx, "go", "test", "-count=1", "-v", "-timeout=30m", "-run=^TestImages$", ".")
	command.Dir = r.path("test", "suites", "image")
	command.Env = append(command.Env, "DRA_IMAGE_DIR="+r.imageFolder(), "DRA_IMAGE_DISTROLESS="+filepath.Join(r.bin, "distroless"),
		"DRA_IMAGE_VERSION="+r.version, "DRA_IMAGE_REVISION="+r.release.revision, "DRA_IMAGE_CREATED="+r.release.created.Format(time.RFC3339))
	return r.do(command)
}

func (r *rehearsal) imageFolder() string { return filepath.Join(r.work, "images") }

// pushImages pushes each image as an index of one architecture, and writes its
// digest to dist/images, as .ci/images does for two.
func (r *rehearsal) pushImages(ctx context.Context) error {
	if err := os.MkdirAll(r.path("dist", "images"), 0o755); err != nil {
		return err
	}
	for variant, suffix := range variants() {
		image, err := tarball.ImageFromPath(filepath.Join(r.imageFolder(), variant+".tar"), nil)
		if err != nil {
			return err
		}
		digest, err := push(ctx, r.image("v"+r.version+suffix), image)
		if err != nil {
			return err
		}
		if err := os.WriteFile(r.path("dist", "images", variant+".digest"), []byte(digest.String()), 0o644); err != nil { //nolint:gosec // a digest is public
			return err
		}
		r.logf("%s is %s", r.image("v"+r.version+suffix), digest)
	}
	return nil
}

// image returns the name of the image with a tag.
func (r *rehearsal) image(tag string) string { return r.release.registry + "/dra-exporter:" + tag }

// push pushes an index of the image to a tag, and returns the index's digest.
func push(ctx context.Context, tag string, image v1.Image) (v1.Hash, error) {
	config, err := image.ConfigFile()
	if err != nil {
		return v1.Hash{}, err
	}
	index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{
		Add:        image,
		Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: config.OS, Architecture: config.Architecture}},
	})
	to, err := name.NewTag(tag)
	if err != nil {
		return v1.Hash{}, err
	}
	if err := remote.WriteIndex(to, index, remote.WithContext(ctx)); err != nil {
		return v1.Hash{}, fmt.Errorf("push %s: %w", tag, err)
	}
	return index.Digest()
}
