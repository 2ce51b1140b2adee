package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// envelope is a line of `cosign verify-attestation`: a signed statement.
type envelope struct {
	PayloadType string `json:"payloadType"`
	Payload     []byte `json:"payload"`
}

// statement is an in-toto statement whose predicate is a CycloneDX SBOM.
type statement struct {
	Subject []struct {
		Digest map[string]string `json:"digest"`
	} `json:"subject"`
	Predicate struct {
		BOMFormat string `json:"bomFormat"`
		Metadata  struct {
			Component struct {
				Version string `json:"version"`
			} `json:"component"`
		} `json:"metadata"`
		Components []struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"components"`
	} `json:"predicate"`
}

// compareSBOMs: each image has the program of its archive, and an attached SBOM of
// this version, for the digest that was pushed, with exactly the modules that are
// linked into the program.
func (r *rehearsal) compareSBOMs(ctx context.Context) error {
	for variant, archive := range map[string]string{"glibc": "-nvidia", "static": ""} {
		if err := r.compareSBOM(ctx, variants()[variant], archive); err != nil {
			return fmt.Errorf("%s: %w", variant, err)
		}
	}
	return nil
}

// compareSBOM takes the suffixes of the image's tag and of the archive's name.
func (r *rehearsal) compareSBOM(ctx context.Context, suffix, archive string) error {
	reference, err := name.NewTag(r.image("v" + r.version + suffix))
	if err != nil {
		return err
	}
	descriptor, err := remote.Get(reference, remote.WithContext(ctx))
	if err != nil {
		return err
	}
	image, err := onlyImage(descriptor)
	if err != nil {
		return err
	}
	program, err := programOfImage(image)
	if err != nil {
		return fmt.Errorf("%s: %w", reference, err)
	}
	archived, err := programOfArchive(r.path("dist", "release", fmt.Sprintf("dra-exporter-%s.linux-%s%s.tar.gz", r.version, runtime.GOARCH, archive)))
	if err != nil {
		return err
	}
	if !bytes.Equal(program, archived) {
		return fmt.Errorf("the programs of %s and of the archive differ, and so may what is in them", reference)
	}
	linked, err := linkedModules(program)
	if err != nil {
		return err
	}
	command := r.command(ctx, r.cosign(), append([]string{"verify-attestation", "--type=cyclonedx", reference.String()}, r.verifyFlags("signer")...)...)
	output, err := command.Output()
	if err != nil {
		return fmt.Errorf("verify the attestation: %w", err)
	}
	attached, err := attachedModules(output, descriptor.Digest, "v"+r.version)
	if err != nil {
		return err
	}
	if !maps.Equal(attached, linked) {
		return fmt.Errorf("the SBOM has %v, the program %v", attached, linked)
	}
	r.logf("%s: the program is that of the archive, and the SBOM has its %d modules", reference, len(linked))
	return nil
}

// attachedModules returns the versions of the modules in the only attestation.
func attachedModules(output []byte, digest v1.Hash, version string) (map[string]string, error) {
	var signed envelope
	if err := json.Unmarshal(output, &signed); err != nil {
		return nil, fmt.Errorf("decode the attestation %q: %w", output, err)
	}
	var s statement
	if err := json.Unmarshal(signed.Payload, &s); err != nil {
		return nil, fmt.Errorf("decode the statement: %w", err)
	}
	if len(s.Subject) != 1 || s.Subject[0].Digest[digest.Algorithm] != digest.Hex {
		return nil, fmt.Errorf("the SBOM is of %v, not of %s", s.Subject, digest)
	}
	if s.Predicate.BOMFormat != "CycloneDX" || s.Predicate.Metadata.Component.Version != version {
		return nil, fmt.Errorf("it is %s of version %s, not CycloneDX of %s", s.Predicate.BOMFormat, s.Predicate.Metadata.Component.Version, version)
	}
	modules := map[string]string{}
	for _, component := range s.Predicate.Components {
		if component.Name != "std" { // Go's own library, which buildinfo does not list
			modules[component.Name] = component.Version
		}
	}
	return modules, nil
}

// onlyImage returns the image of an index with one architecture.
func onlyImage(descriptor *remote.Descriptor) (v1.Image, error) {
	index, err := descriptor.ImageIndex()
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Manifests) != 1 {
		return nil, fmt.Errorf("the index has %d images", len(manifest.Manifests))
	}
	return index.Image(manifest.Manifests[0].Digest)
}

// linkedModules returns the versions of the modules that are linked into a
// program.
func linkedModules(program []byte) (map[string]string, error) {
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return nil, fmt.Errorf("read the modules of the program: %w", err)
	}
	modules := map[string]string{}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		modules[module.Path] = module.Version
	}
	return modules, nil
}

// programOfImage returns the program in an image.
func programOfImage(image v1.Image) ([]byte, error) {
	files := mutate.Extract(image)
	defer files.Close()
	return programIn(files)
}

// programOfArchive returns the program in an archive of a release.
func programOfArchive(file string) ([]byte, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	plain, err := gzip.NewReader(in)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", filepath.Base(file), err)
	}
	return programIn(plain)
}

// programIn returns the first file of that name in a tar archive.
func programIn(in io.Reader) ([]byte, error) {
	for archive := tar.NewReader(in); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("there is no program")
		}
		if err != nil {
			return nil, fmt.Errorf("look for the program: %w", err)
		}
		if header.Typeflag != tar.TypeReg || path.Base(header.Name) != "dra-exporter" {
			continue
		}
		program, err := io.ReadAll(archive)
		if err != nil {
			return nil, fmt.Errorf("read the program: %w", err)
		}
		return program, nil
	}
}
