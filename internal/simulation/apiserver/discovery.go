package apiserver

import (
	"encoding/json"
	"net/http"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// discover adds what clients ask to learn what there is.
func discover(mux *http.ServeMux, kinds []kind) {
	group := resourcev1.SchemeGroupVersion
	served := metav1.GroupVersionForDiscovery{GroupVersion: group.String(), Version: group.Version}
	described := metav1.APIGroup{
		TypeMeta:         metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"},
		Name:             group.Group,
		Versions:         []metav1.GroupVersionForDiscovery{served},
		PreferredVersion: served,
	}
	answers := map[string]any{
		"/version": version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.0-simulated"},
		"/api":     metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}},
		"/apis": metav1.APIGroupList{
			TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
			Groups:   []metav1.APIGroup{described},
		},
		"/apis/" + group.Group: described,
	}
	for _, k := range kinds {
		answers[prefix(k.group)] = resourcesOf(k.group, kinds)
	}
	for path, answer := range answers {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(answer) // a failed write means that the client left
		})
	}
}

func resourcesOf(group schema.GroupVersion, kinds []kind) metav1.APIResourceList {
	list := metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: group.String(),
	}
	for _, k := range kinds {
		if k.group == group {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: k.resource, Kind: k.name, Namespaced: k.namespaced, Verbs: metav1.Verbs{"get", "list", "watch"},
			})
		}
	}
	return list
}

// prefix is the path that all collections of a group are under.
func prefix(group schema.GroupVersion) string {
	if group.Group == "" {
		return "/api/" + group.Version
	}
	return "/apis/" + group.Group + "/" + group.Version
}
