package kubernetes

import (
	"os"
	"strings"
	"testing"
	"text/template"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"changerelay/deployments/internal/promql"
	"changerelay/deployments/internal/promtool"
	"changerelay/deployments/internal/reference"
)

// scaled is the production overlay with the autoscaler, or with KEDA in its
// place, for a namespace.
func scaled(t *testing.T, namespace string, keda bool) *manifests {
	t.Helper()
	component := "hpa"
	if keda {
		component = "keda"
	}
	return production(t, "\nnamespace: change-relay\n", "\nnamespace: "+namespace+"\n", "components/hpa", "components/"+component)
}

// adapterRule is the part of a rule of the Prometheus adapter that is used here
// (https://github.com/kubernetes-sigs/prometheus-adapter/blob/master/docs/config.md).
type adapterRule struct {
	SeriesQuery string `json:"seriesQuery"`
	Resources   struct {
		Overrides map[string]struct {
			Resource string `json:"resource"`
		} `json:"overrides"`
	} `json:"resources"`
	MetricsQuery string `json:"metricsQuery"`
}

// ruleOfTheAdapter reads the values for the adapter's chart, strictly.
func ruleOfTheAdapter(t *testing.T) adapterRule {
	t.Helper()
	text, err := os.ReadFile("components/hpa/adapter-values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	values := strict[struct {
		Rules struct {
			External []adapterRule `json:"external"`
		} `json:"rules"`
	}](t, text)
	if len(values.Rules.External) != 1 {
		t.Fatalf("got %d rules, want one", len(values.Rules.External))
	}
	return values.Rules.External[0]
}

// query is what the adapter asks Prometheus for an autoscaler: its template,
// with the autoscaler's selector and the label of its namespace.
func (rule adapterRule) query(t *testing.T, h *autoscalingv2.HorizontalPodAutoscaler) string {
	t.Helper()
	metric := h.Spec.Metrics[0].External.Metric
	var matchers []string
	for label, value := range metric.Selector.MatchLabels {
		matchers = append(matchers, label+`="`+value+`"`)
	}
	for label, of := range rule.Resources.Overrides {
		if of.Resource == "namespace" {
			matchers = append(matchers, label+`="`+h.Namespace+`"`)
		}
	}
	parsed, err := template.New("query").Delims("<<", ">>").Parse(rule.MetricsQuery)
	if err != nil {
		t.Fatal(err)
	}
	var query strings.Builder
	if err := parsed.Execute(&query, map[string]string{"Series": metric.Name, "LabelMatchers": strings.Join(matchers, ",")}); err != nil {
		t.Fatal(err)
	}
	return query.String()
}

func TestScaling_TheProjectorsAreScaledByAMetricThatTheyHave(t *testing.T) {
	t.Parallel()
	m, k := scaled(t, "shop", false), scaled(t, "shop", true)
	if len(m.Autoscalers) != 1 || len(m.Scaled) != 0 || len(k.Autoscalers) != 0 || len(k.Scaled) != 1 {
		t.Fatalf("got %d autoscalers and %d scaled objects, with KEDA %d and %d, want one of the first, with KEDA of the second",
			len(m.Autoscalers), len(m.Scaled), len(k.Autoscalers), len(k.Scaled))
	}
	h := m.Autoscalers[0].Spec
	if w := m.workload(t, h.ScaleTargetRef.Name); w.kind != h.ScaleTargetRef.Kind {
		t.Errorf("the autoscaler scales a %s, which is a %s", h.ScaleTargetRef.Kind, w.kind)
	}
	job := m.workload(t, h.ScaleTargetRef.Name).pod.Labels[m.Monitors[0].Spec.JobLabel]
	if got := h.Metrics[0].External.Metric.Selector.MatchLabels["job"]; got != job || !strings.Contains(k.Scaled[0].Spec.Triggers[0].Metadata["query"], `job="`+job+`"`) {
		t.Errorf("the autoscaler asks for job %q, KEDA for %s, want the job %q of the PodMonitor", got, k.Scaled[0].Spec.Triggers[0].Metadata["query"], job)
	}
	name := h.Metrics[0].External.Metric.Name
	if !reference.Metrics(t)[name] {
		t.Errorf("the autoscaler asks for %s, which no service has", name)
	}
	if rule := ruleOfTheAdapter(t); !strings.HasPrefix(rule.SeriesQuery, name+"{") {
		t.Errorf("the adapter finds %s, want %s, which the autoscaler asks for", rule.SeriesQuery, name)
	}
	s := k.Scaled[0].Spec
	if s.ScaleTargetRef != h.ScaleTargetRef || s.MinReplicaCount != *h.MinReplicas || s.MaxReplicaCount != h.MaxReplicas {
		t.Errorf("KEDA scales otherwise than the autoscaler: got %+v, want %+v", s, h)
	}
	if each := h.Metrics[0].External.Target.AverageValue.String(); s.Triggers[0].Metadata["threshold"] != each {
		t.Errorf("KEDA wants %s a projector, the autoscaler %s", s.Triggers[0].Metadata["threshold"], each)
	}
}

// scalingQueries are what Prometheus is asked for a deployment in a namespace,
// by who asks, and the labels of the answer.
func scalingQueries(t *testing.T, namespace string) map[string]struct{ query, labels string } {
	t.Helper()
	m, k := scaled(t, namespace, false), scaled(t, namespace, true)
	return map[string]struct{ query, labels string }{
		"the adapter": {ruleOfTheAdapter(t).query(t, m.Autoscalers[0]), `{namespace="` + namespace + `", job="projector"}`},
		"KEDA":        {k.Scaled[0].Spec.Triggers[0].Metadata["query"], `{}`},
	}
}

func TestScaling_TheAutoscalersAskForTheirOwnDeployment(t *testing.T) {
	t.Parallel()
	for who, asks := range scalingQueries(t, "shop") {
		if err := promql.Pinned(asks.query); err != nil {
			t.Errorf("%s: %v", who, err)
		}
	}
}

// Every replica says the same number, so the highest is taken; what others have
// waiting does not count, be they in another namespace or beside.
func TestScaling_TheAutoscalersGetTheSessionsOfTheirOwnDeployment(t *testing.T) {
	t.Parallel()
	type sample map[string]any
	series := func(namespace, job, instance, values string) sample {
		return sample{"series": `projector_sessions_waiting{namespace="` + namespace + `", job="` + job + `", instance="` + instance + `"}`, "values": values}
	}
	found := sample{"expr": "count(" + ruleOfTheAdapter(t).SeriesQuery + ")", "eval_time": "5m", "exp_samples": []sample{{"labels": "{}", "value": 4}}}
	expected := []sample{found}
	for _, asks := range scalingQueries(t, "shop") {
		expected = append(expected, sample{"expr": asks.query, "eval_time": "5m", "exp_samples": []sample{{"labels": asks.labels, "value": 140}}})
	}
	promtool.Find(t).Run(t, "test", "rules", promtool.Write(t, sample{"tests": []sample{{
		"interval": "30s",
		"input_series": []sample{
			series("shop", "projector", "a", "140x20"),
			series("shop", "projector", "b", "140x20"),
			series("shop", "rebuild", "c", "900x20"),
			series("other", "projector", "a", "4000x20"),
		},
		"promql_expr_test": expected,
	}}}))
}

func TestScaling_EveryAlertOfTheOverlayLeadsToItsRunbook(t *testing.T) {
	t.Parallel()
	m := production(t, "runbook: https://git.example/change-relay/blob/main/docs/runbook.md", "runbook: https://wiki.shop/relay")
	for _, group := range m.Rules[0].Spec.Groups {
		for _, rule := range group.Rules {
			if got, want := rule.Annotations["runbook_url"], "https://wiki.shop/relay#"+strings.ToLower(rule.Alert); got != want {
				t.Errorf("runbook_url of %s: got %s, want %s", rule.Alert, got, want)
			}
		}
	}
}
