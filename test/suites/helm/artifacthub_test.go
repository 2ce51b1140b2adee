package helm

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestArtifactHub: the annotations are what Artifact Hub decodes, and name the
// images that the chart runs.
func TestArtifactHub(t *testing.T) {
	out := render(t, install{})
	metadata := out.release.Chart.Metadata
	image := out.need(t, roles()["cluster"]).container(t).text("image")
	var images []struct{ Name, Image string }
	decode := func(key string, into any) {
		t.Helper()
		if err := yaml.Unmarshal([]byte(metadata.Annotations["artifacthub.io/"+key]), into); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	decode("images", &images)
	if len(images) != 2 || images[0].Image != image || images[1].Image != image+"-static" {
		t.Errorf("the images are %v, and the chart runs %s", images, image)
	}
	for _, key := range []string{"links", "screenshots", "recommendations"} {
		var links []struct{ URL string }
		decode(key, &links)
		for _, link := range links {
			if !strings.HasPrefix(link.URL, "https://") {
				t.Errorf("%s: %q", key, link.URL)
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
