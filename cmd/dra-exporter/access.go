package main

import (
	"errors"

	"k8s.io/client-go/rest"
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

// check refuses what could not work. The message names the flag.
func (f *accessFlags) check(config *rest.Config) error {
	switch {
	case !f.kubernetes && len(f.audiences) > 0:
		return errors.New("--web.kubernetes-audience needs --web.kubernetes-auth")
	case f.kubernetes && config == nil:
		return errors.New("--web.kubernetes-auth needs the API server: leave out --kubernetes.disable, or this flag")
	default:
		return nil
	}
}
