package kubernetes

import (
	"maps"
	"slices"
	"strconv"
	"testing"
)

// egress returns the ports that a policy opens, each with whom it is opened to:
// a namespace, addresses, or nothing where it is anybody.
func (m *manifests) egress(t *testing.T, name string) []string {
	t.Helper()
	open := map[string]bool{}
	for _, p := range m.Policies {
		if p.Name != name {
			continue
		}
		for _, out := range p.Spec.Egress {
			to := ""
			for _, peer := range out.To {
				if peer.IPBlock != nil {
					to = peer.IPBlock.CIDR + " "
				}
				if peer.NamespaceSelector != nil {
					to = peer.NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"] + " "
				}
			}
			for _, port := range out.Ports {
				open[to+strconv.Itoa(port.Port.IntValue())] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(open))
}

// What is denied by default is allowed where the settings need it, and nowhere
// else.
func TestEgress_ThePodsMayTalkToTheirServersAndNobodyElse(t *testing.T) {
	t.Parallel()
	const (
		workload = "  - ../../components/workload-identity # or managed-identity\n"
		managed  = "  - ../../components/managed-identity\n"
		otlp     = "  - ../../components/otlp\n"
		dns      = "kube-system 53"
	)
	for name, c := range map[string]struct {
		m        *manifests
		want     []string
		settings map[string]string
	}{
		"dev":              {build(t, "overlays/dev", nil), []string{"27017", "5671", "5672", dns}, map[string]string{"AZURE_CREDENTIAL": "", "OTEL_TRACES_EXPORTER": ""}},
		"production":       {build(t, "overlays/production", nil), []string{"27017", "443", "5671", dns}, map[string]string{"AZURE_CREDENTIAL": "workload", "OTEL_TRACES_EXPORTER": ""}},
		"managed identity": {production(t, workload, managed), []string{"169.254.169.254/32 80", "27017", "5671", dns}, map[string]string{"AZURE_CREDENTIAL": "managed"}},
		"traces":           {production(t, workload, workload+otlp), []string{"27017", "443", "5671", dns, "observability 4318"}, map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://otel-collector.observability.svc:4318"}},
	} {
		if got := c.m.egress(t, "services"); !slices.Equal(got, c.want) {
			t.Errorf("%s: the services may talk to %v, want %v", name, got, c.want)
		}
		for _, service := range []string{"publisher", "projector"} {
			values, _ := c.m.settings(t, c.m.workload(t, service))
			for setting, want := range c.settings {
				if got := values[setting]; got != want {
					t.Errorf("%s: %s of the %s: got %q, want %q", name, setting, service, got, want)
				}
			}
		}
		if !slices.ContainsFunc(c.m.Policies, denies) {
			t.Errorf("%s: nothing is denied by default", name)
		}
	}
	if got, want := build(t, "overlays/production", nil).egress(t, "setup"), []string{"27017", dns}; !slices.Equal(got, want) {
		t.Errorf("setup may talk to %v, want %v", got, want)
	}
}
