package lint

import "slices"

// annotations: whoever looks at a graph sees what happened then.
func annotations(b board, say report) {
	for _, name := range []string{"Restarts", "Rollouts", "Xids"} {
		found := slices.IndexFunc(b.Annotations.List, func(a annotation) bool { return a.Name == name })
		if found < 0 {
			say(b.Title, "it does not mark %s", name)
			continue
		}
		a := b.Annotations.List[found]
		checkSource(a.Datasource, "annotation "+name, say)
		if !a.Enable || a.Expr == "" || a.TitleFormat == "" {
			say("annotation "+name, "it is disabled, or has no query or title")
		}
		for _, s := range selectors(a.Expr) {
			if !slices.Contains(s.matchers, matcher{"cluster", "=~", "$cluster"}) {
				say("annotation "+name, `%s is not asked with cluster=~"$cluster"`, s.metric)
			}
			if s.window != "$__rate_interval" {
				say("annotation "+name, "%s is read without the window $__rate_interval: what is between two steps is missed", s.metric)
			}
		}
	}
}
