package kubernetes

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	"changerelay/deployments/internal/reference"
)

func TestPods_EveryPodIsWhatTheRestrictedProfileAllows(t *testing.T) {
	t.Parallel()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	each(t, func(t *testing.T, m *manifests) {
		for _, w := range m.Workloads {
			for _, result := range evaluator.EvaluatePod(restricted, &w.pod.ObjectMeta, &w.pod.Spec) {
				if !result.Allowed {
					t.Errorf("%s: %s: %s", w.meta.Name, result.ForbiddenReason, result.ForbiddenDetail)
				}
			}
			for _, c := range w.pod.Spec.Containers {
				if c.SecurityContext.ReadOnlyRootFilesystem == nil || !*c.SecurityContext.ReadOnlyRootFilesystem {
					t.Errorf("%s can write to its root file system", w.meta.Name)
				}
				if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
					t.Errorf("resources of %s: got %+v, want a memory limit and a processor request", w.meta.Name, c.Resources)
				}
			}
		}
		for _, n := range m.Namespaces {
			if got := n.Labels["pod-security.kubernetes.io/enforce"]; got != "restricted" {
				t.Errorf("namespace %s enforces %q, want restricted", n.Name, got)
			}
		}
	})
}

func TestPods_EverySettingIsOneThatTheServiceHas(t *testing.T) {
	t.Parallel()
	// What a Secret made by hand has to bring, as the production overlay says.
	byHand := map[string]string{
		"publisher-secrets": "MONGODB_URI", "publisher-setup-secrets": "MONGODB_URI",
		"projector-secrets": "READMODEL_MONGODB_URI", "projector-setup-secrets": "READMODEL_MONGODB_URI",
	}
	each(t, func(t *testing.T, m *manifests) {
		for _, w := range m.Workloads {
			service := strings.TrimSuffix(w.meta.Name, "-setup")
			if service != "publisher" && service != "projector" {
				continue
			}
			values, missing := m.settings(t, w)
			for _, secret := range missing {
				values[byHand[secret]] = "by hand"
			}
			known := reference.Settings(t, service)
			for name := range values {
				if _, is := known[name]; !is {
					t.Errorf("%s: the %s has no setting %q", w.meta.Name, service, name)
				}
			}
			for name, standard := range known {
				if _, set := values[name]; standard == reference.Required && !set {
					t.Errorf("%s: %s is required and not set", w.meta.Name, name)
				}
			}
			if (values["SERVICEBUS_NAMESPACE"] == "") == (values["SERVICEBUS_CONNECTION_STRING"] == "") {
				t.Errorf("%s: want either SERVICEBUS_NAMESPACE or SERVICEBUS_CONNECTION_STRING", w.meta.Name)
			}
		}
	})
}

func TestPods_NoSecretIsInAConfigMap(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m *manifests) {
		for _, c := range m.ConfigMaps {
			for name := range c.Data {
				if strings.Contains(name, "URI") || strings.Contains(name, "CONNECTION_STRING") {
					t.Errorf("ConfigMap %s has %s, which belongs into a Secret", c.Name, name)
				}
			}
		}
	})
}

func TestPods_TheTimesFitIntoEachOther(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m *manifests) {
		for _, service := range []string{"publisher", "projector"} {
			w := m.workload(t, service)
			values, _ := m.settings(t, w)
			stop := duration(t, setting(t, service, values, "SHUTDOWN_TIMEOUT"))
			// The client of the databases is closed after it.
			if grace := time.Duration(*w.pod.Spec.TerminationGracePeriodSeconds) * time.Second; grace < stop+5*time.Second {
				t.Errorf("%s is killed after %v, want SHUTDOWN_TIMEOUT %v and 5s more", service, grace, stop)
			}
			live := w.pod.Spec.Containers[0].LivenessProbe
			if live.HTTPGet.Path != "/live" || live.TimeoutSeconds >= live.PeriodSeconds || live.PeriodSeconds*live.FailureThreshold < 30 {
				t.Errorf("liveness of %s: got %+v, want /live, asked one at a time, with 30s of patience", service, live)
			}
			if ready := w.pod.Spec.Containers[0].ReadinessProbe; ready.HTTPGet.Path != "/ready" {
				t.Errorf("readiness of %s: got %s, want /ready", service, ready.HTTPGet.Path)
			}
		}
		values, _ := m.settings(t, m.workload(t, "publisher"))
		lease := func(name string) time.Duration { return duration(t, setting(t, "publisher", values, name)) }
		if ttl, renew, beat := lease("LEASE_TTL"), lease("LEASE_RENEW_DEADLINE"), lease("LEASE_HEARTBEAT"); ttl <= renew || renew <= beat*11/10 {
			t.Errorf("lease: got TTL %v, deadline %v, heartbeat %v, want each well above the next", ttl, renew, beat)
		}
	})
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestPods_ThePublishersAreNamedByTheirPods(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m *manifests) {
		w := m.workload(t, "publisher")
		if w.kind != "StatefulSet" || w.replicas == nil || *w.replicas != 2 {
			t.Errorf("publishers: got a %s, want a StatefulSet of two", w.kind)
		}
		unique, named := false, false
		for _, e := range w.pod.Spec.Containers[0].Env {
			unique = unique || e.Name == "INSTANCE_ID_UNIQUE" && e.Value == "true"
			named = named || e.Name == "INSTANCE_ID" && e.ValueFrom.FieldRef.FieldPath == "metadata.name"
		}
		if !unique || !named {
			t.Errorf("environment: got %+v, want INSTANCE_ID of the pod's name, said to be unique", w.pod.Spec.Containers[0].Env)
		}
		if w := m.workload(t, "projector"); w.replicas != nil {
			t.Errorf("projectors: got %d replicas, want none said: applying the manifest would undo the scaling", *w.replicas)
		}
	})
}

func TestPods_EveryImageHasATagThatStays(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m *manifests) {
		for _, w := range m.Workloads {
			for _, c := range w.pod.Spec.Containers {
				if _, tag, tagged := strings.Cut(c.Image[strings.LastIndex(c.Image, "/")+1:], ":"); !tagged || tag == "latest" {
					t.Errorf("image of %s: got %s, want a tag other than latest", w.meta.Name, c.Image)
				}
			}
		}
	})
}

func TestPods_ProductionEntersServiceBusByWorkloadIdentity(t *testing.T) {
	t.Parallel()
	m := build(t, "overlays/production", nil)
	for _, service := range []string{"publisher", "projector"} {
		w := m.workload(t, service)
		if got := w.pod.Labels["azure.workload.identity/use"]; got != "true" {
			t.Errorf("label azure.workload.identity/use of %s: got %q, want true", service, got)
		}
		named := slices.ContainsFunc(m.ServiceAccounts, func(a *serviceAccount) bool {
			return a.Name == w.pod.Spec.ServiceAccountName && a.Annotations["azure.workload.identity/client-id"] != ""
		})
		if !named {
			t.Errorf("service account %q of %s has no client-id", w.pod.Spec.ServiceAccountName, service)
		}
	}
}

// A credential that asks for an identity that is not injected is refused as a
// setting, by every command.
func TestPods_NoPodAsksForAWorkloadIdentityThatItDoesNotGet(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m *manifests) {
		for _, w := range m.Workloads {
			values, _ := m.settings(t, w)
			asks, gets := values["AZURE_CREDENTIAL"] == "workload", w.pod.Labels["azure.workload.identity/use"] == "true"
			if asks != gets {
				t.Errorf("%s: asks for a workload identity: %v, gets one: %v", w.meta.Name, asks, gets)
			}
		}
	})
}

func TestPods_TheExampleProjectionsAreThoseThatTheDemoTests(t *testing.T) {
	t.Parallel()
	var here, demo any
	for path, into := range map[string]*any{"deployments/kubernetes/base/projections.yaml": &here, "services/e2e/orders.yaml": &demo} {
		if err := yaml.Unmarshal([]byte(reference.Read(t, path)), into); err != nil {
			t.Fatal(err)
		}
	}
	got, _ := yaml.Marshal(here)
	want, _ := yaml.Marshal(demo)
	if string(got) != string(want) {
		t.Errorf("projections: got\n%s\nwant\n%s", got, want)
	}
}
