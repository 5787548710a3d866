package promql

import "testing"

const one = `{namespace="shop", job="publisher"}`

func TestScope_AQueryThatKeepsDeploymentsApartIsTaken(t *testing.T) {
	t.Parallel()
	for name, query := range map[string]string{
		"no aggregation":                `publisher_lag_seconds > 60`,
		"grouped by both":               `sum by (job, partition, namespace) (publisher_leader) == 0`,
		"without others":                `sum without (instance) (publisher_leader) == 0`,
		"joined on both":                `a and on (namespace, job, instance) b`,
		"joined on all labels":          `sum by (namespace, job) (a) - max by (namespace, job) (b)`,
		"joined on all but others":      `a and ignoring (instance) b`,
		"one deployment":                `max(a` + one + `)`,
		"joins within one deployment":   `a` + one + ` and on (instance) b` + one,
		"absence of one deployment":     `absent(a` + one + `)`,
		"absence beside what is scoped": `sum by (namespace, job) (a) == 0 or (b unless c) or absent(a)`,
		"another label is written":      `label_replace(a, "zone", "$1", "node", "(.*)")`,
	} {
		if err := KeepsApart(query); err != nil {
			t.Errorf("%s: got %v, want none", name, err)
		}
	}
}

func TestScope_AQueryThatMixesDeploymentsIsRefused(t *testing.T) {
	t.Parallel()
	for name, query := range map[string]string{
		"grouped by nothing":            `max(a)`,
		"grouped by another label":      `sum by (partition) (publisher_leader) == 0`,
		"grouped by one of the two":     `sum by (namespace) (a)`,
		"without one of the two":        `sum without (job) (a)`,
		"deep in a query":               `sum by (namespace, job) (max_over_time(a[5m]) > on () group_left () avg(b))`,
		"the first of all":              `topk(1, a)`,
		"joined on others":              `a and on (instance, partition) b`,
		"joined on none":                `a unless on () b`,
		"joined on all but the job":     `a and ignoring (job) b`,
		"absence alone":                 `absent(projector_build_info)`,
		"absences alone":                `absent(a) or absent_over_time(b[1d])`,
		"absence that takes away":       `sum by (namespace, job) (a) and on (namespace, job) absent(b)`,
		"absence within an alternative": `a or absent(b) == 1`,
		"of a number":                   `a > scalar(b)`,
		"written over":                  `label_replace(a, "namespace", "x", "", "")`,
		"namespaces by a pattern":       `max(a{namespace=~".+", job="publisher"})`,
		"no namespace":                  `max(a{namespace="", job="publisher"})`,
		"one pinned, one not":           `max(a` + one + ` or b)`,
		"not a query":                   `sum(`,
	} {
		if err := KeepsApart(query); err == nil {
			t.Errorf("%s: got no error for %s", name, query)
		}
	}
}

func TestScope_APinnedQueryNamesItsDeploymentEverywhere(t *testing.T) {
	t.Parallel()
	if err := Pinned(`max(a` + one + `) / sum(rate(b` + one + `[5m]))`); err != nil {
		t.Errorf("got %v, want none", err)
	}
	for _, query := range []string{`sum by (namespace, job) (a)`, `a` + one + ` / b`, `max(`} {
		if err := Pinned(query); err == nil {
			t.Errorf("got no error for %s", query)
		}
	}
}
