package main

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

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

// compareSBOMs: each image has an attached SBOM of this version, for the digest
// that was pushed, with exactly the modules that are linked into its program.
func (r *rehearsal) compareSBOMs(ctx context.Context) error {
	for _, variant := range slices.Sorted(maps.Keys(variants())) {
		if err := r.compareSBOM(ctx, variants()[variant]); err != nil {
			return fmt.Errorf("%s: %w", variant, err)
		}
	}
	return nil
}

func (r *rehearsal) compareSBOM(ctx context.Context, suffix string) error {
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
	linked, err := linkedModules(image)
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
	r.logf("%s: SBOM and program have the same %d modules", reference, len(linked))
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

// linkedModules returns the versions of the modules that are linked into the
// image's program.
func linkedModules(image v1.Image) (map[string]string, error) {
	files := mutate.Extract(image)
	defer files.Close()
	for archive := tar.NewReader(files); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the image has no program")
		}
		if err != nil {
			return nil, fmt.Errorf("read the image: %w", err)
		}
		if path.Clean("/"+header.Name) != "/dra-exporter" {
			continue
		}
		program, err := io.ReadAll(archive)
		if err != nil {
			return nil, fmt.Errorf("read the program: %w", err)
		}
		info, err := buildinfo.Read(bytes.NewReader(program))
		if err != nil {
			return nil, fmt.Errorf("read the modules of the program: %w", err)
		}
		modules := map[string]string{}
		for _, module := range info.Deps {
			if module.Replace != nil {
				module = module.Replace
			}
			modules[module.Path] = strings.TrimSpace(module.Version)
		}
		return modules, nil
	}
}
