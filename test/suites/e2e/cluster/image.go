package cluster

import (
	"context"
	"fmt"
	"os"
)

// Image is a container image made from files of this machine.
type Image struct {
	Name       string            // with host and tag, as in localhost/pause:1
	Files      map[string]string // path in the image → file or folder here; links are followed
	Entrypoint []string
	User       string // as in the image's configuration; empty is root
}

func (c *Cluster) importPause(ctx context.Context) error {
	program, err := c.builtTool("pause", "pause")
	if err != nil {
		return err
	}
	return c.ImportImage(ctx, Image{
		Name:       PauseImage,
		Files:      map[string]string{"/pause": program},
		Entrypoint: []string{"/pause"},
	})
}

// ImportImage imports an image into containerd. Pods use it with
// imagePullPolicy: Never. An image of the same name is replaced.
func (c *Cluster) ImportImage(ctx context.Context, image Image) error {
	archive, err := os.Create(c.layout.path("image.tar"))
	if err != nil {
		return fmt.Errorf("import %s: %w", image.Name, err)
	}
	defer os.Remove(archive.Name())
	if err := writeImage(archive, image); err != nil {
		return fmt.Errorf("import %s: %w", image.Name, err)
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("import %s: %w", image.Name, err)
	}
	return c.ImportArchive(ctx, archive.Name(), image.Name)
}

// ImportArchive imports an image from a file, as `docker save` writes it or as
// an OCI layout, under the name that it has in the file.
func (c *Cluster) ImportArchive(ctx context.Context, archive, name string) error {
	if err := c.ctr(ctx, "images", "import", archive); err != nil {
		return err
	}
	// Without the label containerd's CRI plugin ignores it.
	return c.ctr(ctx, "images", "label", name, "io.cri-containerd.image=managed")
}
