package helm

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"sigs.k8s.io/yaml"
)

// TestArtifactHub: the annotations are what Artifact Hub decodes, and name the
// images that the chart runs.
func TestArtifactHub(t *testing.T) {
	out := render(t, install{})
	metadata := out.release.Chart.Metadata
	image := out.need(t, roles()["cluster"]).container(t).text("image")
	var images []struct {
		Name, Image string
		Platforms   []string
	}
	decode := func(key string, into any) {
		t.Helper()
		if err := yaml.UnmarshalStrict([]byte(metadata.Annotations["artifacthub.io/"+key]), into); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	decode("images", &images)
	if len(images) != 2 || images[0].Image != image || images[1].Image != image+"-static" {
		t.Errorf("the images are %v, and the chart runs %s", images, image)
	}
	for _, image := range images {
		if _, err := name.ParseReference(image.Image); err != nil || len(image.Platforms) == 0 {
			t.Errorf("%+v: %v", image, err)
		}
	}
	for _, key := range []string{"links", "screenshots", "recommendations"} {
		var links []struct{ URL, Name, Title string }
		decode(key, &links)
		for _, link := range links {
			if !strings.HasPrefix(link.URL, "https://") || (link.Name == "") != (key != "links") || (link.Title == "") != (key != "screenshots") {
				t.Errorf("%s: %+v", key, link)
			}
			for _, of := range []string{"https://github.com/dra-exporter/dra-exporter/blob/main/", "https://raw.githubusercontent.com/dra-exporter/dra-exporter/main/"} {
				if path, found := strings.CutPrefix(link.URL, of); found {
					read(t, root+"/"+path)
				}
			}
		}
		if len(links) == 0 {
			t.Errorf("there are no %s", key)
		}
	}
	icon, _ := strings.CutPrefix(metadata.Icon, "https://raw.githubusercontent.com/dra-exporter/dra-exporter/main/")
	if !strings.HasPrefix(read(t, root+"/"+icon), "<svg") {
		t.Errorf("the icon is %s", metadata.Icon)
	}
}

// TestArtifactHubRules: the annotations are known to Artifact Hub, and have values that
// it accepts. Source: internal/tracker/source/helm/helm.go and internal/hub/pkg.go of
// github.com/artifacthub/hub, May 2026; internal packages cannot be imported. A release
// adds the changes.
func TestArtifactHubRules(t *testing.T) {
	annotations := render(t, install{}).release.Chart.Metadata.Annotations
	known := []string{
		"alternativeName", "category", "changes", "crds", "crdsExamples", "images", "license", "links", "maintainers", "operator",
		"operatorCapabilities", "prerelease", "recommendations", "screenshots", "containsSecurityUpdates", "signKey",
	}
	for key := range annotations {
		if short, ok := strings.CutPrefix(key, "artifacthub.io/"); !ok || !slices.Contains(known, short) {
			t.Errorf("Artifact Hub does not know %s", key)
		}
	}
	categories := []string{
		"skip-prediction", "ai-machine-learning", "database", "integration-delivery", "monitoring-logging", "networking", "security", "storage",
		"streaming-messaging",
	}
	if category := annotations["artifacthub.io/category"]; !slices.Contains(categories, category) {
		t.Errorf("the category is %q", category)
	}
	if _, err := strconv.ParseBool(annotations["artifacthub.io/operator"]); err != nil {
		t.Error(err)
	}
	if license := annotations["artifacthub.io/license"]; license != "Apache-2.0" || !strings.Contains(read(t, root+"/LICENSE"), "Apache License") {
		t.Errorf("the license is %q", license)
	}
}

// TestArtifactHubRepository: Artifact Hub decodes the file of the repository, which must
// not be empty. Its ID, if it is known, is a UUID.
func TestArtifactHubRepository(t *testing.T) {
	var repository *struct {
		RepositoryID string                           `json:"repositoryID"`
		Owners       []struct{ Name, Email string }   `json:"owners"`
		Ignore       []struct{ Name, Version string } `json:"ignore"`
	}
	if err := yaml.UnmarshalStrict([]byte(read(t, root+"/deploy/helm/artifacthub-repo.yml")), &repository); err != nil || repository == nil {
		t.Fatalf("%v: %v", repository, err)
	}
	if id := repository.RepositoryID; id != "" && !regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(id) {
		t.Errorf("the ID is %q", id)
	}
	for _, owner := range repository.Owners {
		if owner.Name == "" || !strings.Contains(owner.Email, "@") {
			t.Errorf("an owner is %+v", owner)
		}
	}
}
