package kubernetes

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"changerelay/deployments/internal/reference"
)

type (
	serviceAccount = corev1.ServiceAccount
	networkPolicy  = networkingv1.NetworkPolicy
)

// selected returns the names of the workloads whose pods a selector matches.
func (m *manifests) selected(t *testing.T, selector *metav1.LabelSelector) []string {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, w := range m.Workloads {
		if s.Matches(labels.Set(w.pod.Labels)) {
			names = append(names, w.meta.Name)
		}
	}
	return names
}

func TestEverySelectorMatchesWhatItIsFor(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m *manifests) {
		check := func(what string, selector *metav1.LabelSelector, want ...string) {
			if got := m.selected(t, selector); !slices.Equal(got, want) {
				t.Errorf("%s selects %v, want %v", what, got, want)
			}
		}
		for _, w := range m.Workloads {
			check(w.kind+" "+w.meta.Name, w.selector, w.meta.Name)
			for _, spread := range w.pod.Spec.TopologySpreadConstraints {
				check("the spread of "+w.meta.Name, spread.LabelSelector, w.meta.Name)
			}
		}
		for _, s := range m.Services {
			check("Service "+s.Name, &metav1.LabelSelector{MatchLabels: s.Spec.Selector}, s.Name)
		}
		for _, b := range m.Budgets {
			check("PodDisruptionBudget "+b.Name, b.Spec.Selector, b.Name)
		}
		for _, p := range m.Monitors {
			got := m.selected(t, &p.Spec.Selector)
			slices.Sort(got)
			if want := []string{"projector", "publisher"}; !slices.Equal(got, want) {
				t.Errorf("PodMonitor %s selects %v, want %v", p.Name, got, want)
			}
		}
		for _, p := range m.Policies {
			if got := m.selected(t, &p.Spec.PodSelector); len(got) == 0 {
				t.Errorf("NetworkPolicy %s selects nothing", p.Name)
			}
		}
	})
}

func TestEveryPortThatIsNamedIsThere(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m *manifests) {
		named := func(what, name string, workloads []string) {
			for _, w := range workloads {
				ports := m.workload(t, w).pod.Spec.Containers[0].Ports
				if !slices.ContainsFunc(ports, func(p corev1.ContainerPort) bool { return p.Name == name }) {
					t.Errorf("%s: %s has no port %q", what, w, name)
				}
			}
		}
		for _, s := range m.Services {
			for _, p := range s.Spec.Ports {
				named("Service "+s.Name, p.TargetPort.StrVal, []string{s.Name})
			}
		}
		for _, p := range m.Monitors {
			for _, e := range p.Spec.PodMetricsEndpoints {
				named("PodMonitor "+p.Name, *e.Port, m.selected(t, &p.Spec.Selector))
			}
		}
		for _, p := range m.Policies {
			for _, in := range p.Spec.Ingress {
				for _, port := range in.Ports {
					named("NetworkPolicy "+p.Name, port.Port.StrVal, m.selected(t, &p.Spec.PodSelector))
				}
			}
		}
		for _, w := range m.Workloads {
			if probe := w.pod.Spec.Containers[0].ReadinessProbe; probe != nil {
				named("readiness", probe.HTTPGet.Port.StrVal, []string{w.meta.Name})
			}
		}
	})
}

// What is denied by default has to be allowed for the ports that the addresses name.
func TestTheServicesMayTalkToTheirServers(t *testing.T) {
	t.Parallel()
	needed := map[string][]int{"overlays/dev": {27017, 5672}, "overlays/production": {27017, 5671, 443}}
	for overlay, ports := range needed {
		m := build(t, overlay, nil)
		open := map[int]bool{}
		for _, p := range m.Policies {
			if p.Name != "services" {
				continue
			}
			for _, out := range p.Spec.Egress {
				for _, port := range out.Ports {
					open[port.Port.IntValue()] = true
				}
			}
		}
		for _, port := range append(ports, 53) {
			if !open[port] {
				t.Errorf("%s: got open ports %v, want %d among them", overlay, open, port)
			}
		}
		if !slices.ContainsFunc(m.Policies, denies) {
			t.Errorf("%s: nothing is denied by default", overlay)
		}
	}
}

func TestTheProjectorsAreScaledByAMetricThatTheyHave(t *testing.T) {
	t.Parallel()
	metrics := reference.Metrics(t)
	withKEDA := strings.Replace(reference.Read(t, "deployments/kubernetes/overlays/production/kustomization.yaml"), "components/hpa", "components/keda", 1)
	m := build(t, "overlays/production", nil)
	if len(m.Autoscalers) != 1 || len(m.Scaled) != 0 {
		t.Fatalf("got %d autoscalers and %d scaled objects, want one of the first", len(m.Autoscalers), len(m.Scaled))
	}
	h := m.Autoscalers[0].Spec
	if w := m.workload(t, h.ScaleTargetRef.Name); w.kind != h.ScaleTargetRef.Kind {
		t.Errorf("the autoscaler scales a %s, which is a %s", h.ScaleTargetRef.Kind, w.kind)
	}
	name := h.Metrics[0].External.Metric.Name
	if !metrics[name] {
		t.Errorf("the autoscaler asks for %s, which no service has", name)
	}
	k := build(t, "/kubernetes/overlays/production", map[string]string{"/kubernetes/overlays/production/kustomization.yaml": withKEDA})
	if len(k.Autoscalers) != 0 || len(k.Scaled) != 1 {
		t.Fatalf("with KEDA: got %d autoscalers and %d scaled objects, want one of the second", len(k.Autoscalers), len(k.Scaled))
	}
	s := k.Scaled[0].Spec
	if s.ScaleTargetRef != h.ScaleTargetRef || s.MinReplicaCount != *h.MinReplicas || s.MaxReplicaCount != h.MaxReplicas {
		t.Errorf("KEDA scales otherwise than the autoscaler: got %+v, want %+v", s, h)
	}
	if query := s.Triggers[0].Metadata["query"]; query != "max("+name+")" {
		t.Errorf("KEDA asks for %s, want the highest %s, of which every projector says the same", query, name)
	}
	if each := h.Metrics[0].External.Target.AverageValue.String(); s.Triggers[0].Metadata["threshold"] != each {
		t.Errorf("KEDA wants %s a projector, the autoscaler %s", s.Triggers[0].Metadata["threshold"], each)
	}
}

// denies says whether a policy denies everything to everyone.
func denies(p *networkPolicy) bool {
	return len(p.Spec.PodSelector.MatchLabels)+len(p.Spec.PodSelector.MatchExpressions) == 0 &&
		len(p.Spec.PolicyTypes) == 2 && len(p.Spec.Ingress)+len(p.Spec.Egress) == 0
}
