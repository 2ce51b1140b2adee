package cluster

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

const (
	layerType    = "application/vnd.oci.image.layer.v1.tar"
	configType   = "application/vnd.oci.image.config.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
)

// writeImage writes an OCI image layout of one layer as a tar archive.
func writeImage(w io.Writer, image Image) error {
	layer, err := layerOf(image.Files)
	if err != nil {
		return err
	}
	layerBlob := describe(layerType, layer)
	config, err := json.Marshal(configOf(image, layerBlob))
	if err != nil {
		return err
	}
	configBlob := describe(configType, config)
	manifest, err := json.Marshal(manifest{SchemaVersion: 2, MediaType: manifestType, Config: configBlob, Layers: []descriptor{layerBlob}})
	if err != nil {
		return err
	}
	manifestBlob := describe(manifestType, manifest)
	manifestBlob.Annotations = map[string]string{"io.containerd.image.name": image.Name}
	index, err := json.Marshal(index{SchemaVersion: 2, Manifests: []descriptor{manifestBlob}})
	if err != nil {
		return err
	}
	return writeTar(w, []file{
		{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)}, {"index.json", index},
		{manifestBlob.path(), manifest}, {configBlob.path(), config}, {layerBlob.path(), layer},
	})
}

func configOf(image Image, layer descriptor) map[string]any {
	return map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config": map[string]any{
			"Entrypoint": image.Entrypoint,
			"User":       image.User,
			"Env":        []string{"PATH=/usr/bin:/bin"},
		},
		// The layer is not compressed, so its digest is its diff id too.
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{layer.Digest}},
	}
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	Manifests     []descriptor `json:"manifests"`
}

// descriptor is how an OCI document points to a blob.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

func describe(mediaType string, blob []byte) descriptor {
	return descriptor{MediaType: mediaType, Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(blob)), Size: len(blob)}
}

func (d descriptor) path() string {
	return "blobs/sha256/" + strings.TrimPrefix(d.Digest, "sha256:")
}

// layerOf packs files and folders of this machine, parents before children.
func layerOf(files map[string]string) ([]byte, error) {
	var buffer bytes.Buffer
	layer := tar.NewWriter(&buffer)
	made := map[string]bool{".": true, "/": true}
	for _, target := range slices.Sorted(maps.Keys(files)) {
		err := filepath.WalkDir(files[target], func(source string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			inside, err := filepath.Rel(files[target], source)
			if err != nil {
				return err
			}
			return addFile(layer, made, path.Join(target, inside), source)
		})
		if err != nil {
			return nil, fmt.Errorf("pack %s: %w", target, err)
		}
	}
	if err := layer.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// addFile adds a file, or a folder without its contents, and the folders above
// it that were not added yet.
func addFile(layer *tar.Writer, made map[string]bool, name, source string) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return addFolder(layer, made, name)
	}
	if err := addFolder(layer, made, path.Dir(name)); err != nil {
		return err
	}
	data, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	return writeTarFile(layer, strings.TrimPrefix(name, "/"), int64(info.Mode().Perm()), data)
}

func addFolder(layer *tar.Writer, made map[string]bool, name string) error {
	if made[name] {
		return nil
	}
	if err := addFolder(layer, made, path.Dir(name)); err != nil {
		return err
	}
	made[name] = true
	return layer.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: strings.TrimPrefix(name, "/") + "/", Mode: 0o755})
}

type file struct {
	name string
	data []byte
}

func writeTar(w io.Writer, files []file) error {
	archive := tar.NewWriter(w)
	for _, f := range files {
		if err := writeTarFile(archive, f.name, 0o644, f.data); err != nil {
			return err
		}
	}
	return archive.Close()
}

func writeTarFile(archive *tar.Writer, name string, mode int64, data []byte) error {
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(data))}); err != nil {
		return err
	}
	_, err := archive.Write(data)
	return err
}
