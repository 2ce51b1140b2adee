package apiserver

import (
	"encoding/json"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// discover adds what clients ask to learn what there is.
func discover(mux *http.ServeMux, kinds []kind) {
	groups := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	answers := map[string]any{
		"/version": version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.0-simulated"},
		"/api":     metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}},
	}
	for _, k := range kinds {
		answers[prefix(k.group)] = newResourceList(k.group, kinds)
		path := "/apis/" + k.group.Group
		if _, ok := answers[path]; ok || k.group.Group == "" {
			continue
		}
		served := metav1.GroupVersionForDiscovery{GroupVersion: k.group.String(), Version: k.group.Version}
		described := metav1.APIGroup{
			TypeMeta:         metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"},
			Name:             k.group.Group,
			Versions:         []metav1.GroupVersionForDiscovery{served},
			PreferredVersion: served,
		}
		groups.Groups, answers[path] = append(groups.Groups, described), described
	}
	answers["/apis"] = groups
	for path, answer := range answers {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(answer) // a failed write means that the client left
		})
	}
}

func newResourceList(group schema.GroupVersion, kinds []kind) metav1.APIResourceList {
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
