package main

import (
	"errors"
	"fmt"

	_ "k8s.io/client-go/plugin/pkg/client/auth/oidc" // used in kubeconfigs of users
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// kubectlFlags select a cluster and namespace, as kubectl's flags do.
type kubectlFlags struct {
	kubeconfig string
	context    string
	namespace  string // its flag has another help text in each command
}

// addTo adds the flags that are the same in each command.
func (f *kubectlFlags) addTo(command flagSet) {
	command.Flag("kubeconfig", "Path to a kubeconfig. Default: $KUBECONFIG, ~/.kube/config, or the pod's own service account.").StringVar(&f.kubeconfig)
	command.Flag("context", "Context of the kubeconfig to use.").StringVar(&f.context)
}

// connection returns the cluster and the namespace that kubectl uses.
func (f *kubectlFlags) connection() (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.context}
	overrides.Context.Namespace = f.namespace
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, "", errors.New("no API server: there is no kubeconfig, and this is not a pod; set --kubeconfig or KUBECONFIG")
	}
	if err != nil {
		return nil, "", fmt.Errorf("read the kubeconfig: %w", err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("read the kubeconfig's namespace: %w", err)
	}
	return config, namespace, nil
}
