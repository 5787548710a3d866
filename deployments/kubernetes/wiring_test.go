package kubernetes

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
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

func TestWiring_EverySelectorMatchesWhatItIsFor(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m *manifests) {
		check := func(what string, selector *metav1.LabelSelector, want ...string) {
			if got := m.selected(t, selector); !slices.Equal(got, want) {
				t.Errorf("%s selects %v, want %v", what, got, want)
			}
		}
		for _, w := range m.Workloads {
			if w.selector != nil {
				check(w.kind+" "+w.meta.Name, w.selector, w.meta.Name)
			}
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
			for _, w := range got {
				if job := m.workload(t, w).pod.Labels[p.Spec.JobLabel]; job != w {
					t.Errorf("PodMonitor %s: got job %q for %s, want its name", p.Name, job, w)
				}
			}
		}
		for _, p := range m.Policies {
			if got := m.selected(t, &p.Spec.PodSelector); len(got) == 0 {
				t.Errorf("NetworkPolicy %s selects nothing", p.Name)
			}
		}
	})
}

func TestWiring_EveryPortThatIsNamedIsThere(t *testing.T) {
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

// denies says whether a policy denies everything to everyone.
func denies(p *networkPolicy) bool {
	return len(p.Spec.PodSelector.MatchLabels)+len(p.Spec.PodSelector.MatchExpressions) == 0 &&
		len(p.Spec.PolicyTypes) == 2 && len(p.Spec.Ingress)+len(p.Spec.Egress) == 0
}
