package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// pack writes the stage as an image of one layer, in the format of `docker
// save`.
func (s *stage) pack(called, arch, out string) error {
	if s.isHost {
		return errors.New("the target is a stage of the host: its programs are not in it")
	}
	tag, err := name.NewTag(called)
	if err != nil {
		return err
	}
	layerFile := filepath.Join(s.build.work, "layer.tar")
	if err := tarFolder(layerFile, s.root); err != nil {
		return fmt.Errorf("pack the files: %w", err)
	}
	layer, err := tarball.LayerFromFile(layerFile)
	if err != nil {
		return err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	config.Architecture, config.OS, config.Config = arch, "linux", s.config
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return err
	}
	return writeImage(out, tag, image)
}

// writeImage writes either the complete image or no file.
func writeImage(out string, tag name.Tag, image v1.Image) error {
	draft := out + ".draft"
	if err := tarball.WriteToFile(draft, tag, image); err != nil {
		return fmt.Errorf("write the image: %w", err)
	}
	return os.Rename(draft, out)
}

// tarFolder packs a folder with owners, modes and links.
func tarFolder(out, folder string) error {
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(file)
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == folder {
			return err
		}
		return addTo(archive, folder, path, entry)
	})
	return errors.Join(err, archive.Close(), file.Close())
}

func addTo(archive *tar.Writer, folder, path string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	var link string
	if info.Mode()&fs.ModeSymlink != 0 {
		if link, err = os.Readlink(path); err != nil {
			return err
		}
	}
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	if header.Name, err = filepath.Rel(folder, path); err != nil {
		return err
	}
	if info.IsDir() {
		header.Name += "/"
	}
	header.Uname, header.Gname = "", ""
	if status, is := info.Sys().(*syscall.Stat_t); is {
		header.Uid, header.Gid = int(status.Uid), int(status.Gid)
	}
	if err := archive.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(archive, file)
	return err
}
