package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/self"
	"github.com/dra-exporter/dra-exporter/internal/kubeauth"
	"github.com/dra-exporter/dra-exporter/internal/page"
	"github.com/dra-exporter/dra-exporter/internal/web"
)

// accessFlags say who may read the pages, besides the web configuration.
type accessFlags struct {
	kubernetes bool
	audiences  []string
}

func (f *accessFlags) add(command flagSet) {
	command.Flag("web.kubernetes-auth", "Ask the API server who sends a request and what they may read, by TokenReview and SubjectAccessReview; see docs/security.md.").BoolVar(&f.kubernetes)
	command.Flag("web.kubernetes-audience", "Audience that tokens must be for, with --web.kubernetes-auth. Without it, that of the API server. Repeatable.").PlaceHolder("AUDIENCE").StringsVar(&f.audiences)
}

// access is how requests are admitted. Its zero value admits all.
type access struct {
	guard *kubeauth.Guard
	pages map[string]http.Handler
}

// access prepares to ask the API server. config is nil where there is none.
func (f *accessFlags) access(config *rest.Config, registry prometheus.Registerer, now clock.Clock, log *slog.Logger) (*access, error) {
	a := &access{}
	switch {
	case !f.kubernetes && len(f.audiences) > 0:
		return nil, errors.New("--web.kubernetes-audience needs --web.kubernetes-auth")
	case !f.kubernetes:
		return a, nil
	case config == nil:
		return nil, errors.New("--web.kubernetes-auth needs the API server: leave out --kubernetes.disable, or this flag")
	}
	family := self.AccessReviews()
	reviews := prometheus.NewCounterVec(prometheus.CounterOpts{Name: family.Name, Help: family.Help}, family.Labels)
	if err := registry.Register(reviews); err != nil {
		return nil, fmt.Errorf("count reviews: %w", err)
	}
	guard, err := kubeauth.New(kubeauth.Options{
		Config: config, Audiences: f.audiences, Clock: now, Log: log,
		Page:    func(path string) bool { _, is := a.pages[path]; return is },
		Observe: func(review, outcome string) { reviews.WithLabelValues(review, outcome).Inc() },
	})
	if err != nil {
		return nil, fmt.Errorf("prepare --web.kubernetes-auth: %w", err)
	}
	a.guard = guard
	return a, nil
}

// visible is what each reader of the pages may see, nil where all see all.
func (a *access) visible() page.Visible {
	if a.guard == nil {
		return nil
	}
	return func(r *http.Request, namespaces []string) (map[string]bool, bool, error) {
		visible, all, err := a.guard.Namespaces(r, namespaces)
		if err != nil {
			status, message := kubeauth.Answer(err)
			err = &page.Refusal{Status: status, Message: message}
		}
		return visible, all, err
	}
}

// admit puts the guard in front of all that a server serves but its probes.
func (a *access) admit(config web.Config) web.Config {
	if a.guard != nil {
		a.pages, config.Admit = config.Pages, a.guard.Handler
	}
	return config
}
