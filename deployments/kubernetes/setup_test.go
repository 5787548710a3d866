package kubernetes

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// pod returns what a pod runs with, without the names of the environment.
func pod(t *testing.T, w workload) (container corev1.Container, secrets []string) {
	t.Helper()
	container = w.pod.Spec.Containers[0]
	for _, from := range container.EnvFrom {
		if from.SecretRef != nil {
			secrets = append(secrets, from.SecretRef.Name)
		}
	}
	return container, secrets
}

// The services run with little; what prepares their databases has more, under
// a name of its own that no service runs with.
func TestSetup_SetupHasAnIdentityAndASecretOfItsOwn(t *testing.T) {
	t.Parallel()
	m := build(t, "overlays/production", nil)
	if len(m.Templates) != 2 {
		t.Fatalf("got %d templates, want one for each service", len(m.Templates))
	}
	for _, service := range []string{"publisher", "projector"} {
		running, setup := m.workload(t, service), m.workload(t, service+"-setup")
		served, itsSecrets := pod(t, running)
		prepared, secrets := pod(t, setup)
		if !slices.Equal(prepared.Args, []string{"setup"}) || prepared.Image != served.Image {
			t.Errorf("%s runs %v of %s, want setup of the service's image %s", setup.meta.Name, prepared.Args, prepared.Image, served.Image)
		}
		if account := setup.pod.Spec.ServiceAccountName; account != setup.meta.Name || !slices.ContainsFunc(m.ServiceAccounts, func(a *serviceAccount) bool { return a.Name == account }) {
			t.Errorf("%s runs as %q, want the account of its own name, and that there is one", setup.meta.Name, account)
		}
		if !slices.Equal(secrets, []string{service + "-setup-secrets"}) || slices.Contains(itsSecrets, secrets[0]) {
			t.Errorf("%s reads the Secrets %v, the service %v, want one of its own", setup.meta.Name, secrets, itsSecrets)
		}
		if !slices.Equal(mounts(prepared), mounts(served)) {
			t.Errorf("%s mounts %v, the service %v, want the same", setup.meta.Name, mounts(prepared), mounts(served))
		}
	}
}

func mounts(c corev1.Container) []string {
	var paths []string
	for _, m := range c.VolumeMounts {
		paths = append(paths, m.MountPath)
	}
	return paths
}

// It is an operator who runs it, and applying the manifests again, with another
// image, never fails for what ran before.
func TestSetup_SetupRunsWhenItIsAskedTo(t *testing.T) {
	t.Parallel()
	m := build(t, "overlays/production", nil)
	for _, c := range m.Templates {
		if c.Spec.Suspend == nil || !*c.Spec.Suspend {
			t.Errorf("%s runs by itself", c.Name)
		}
		job := c.Spec.JobTemplate.Spec
		if job.ActiveDeadlineSeconds == nil || job.BackoffLimit == nil || job.TTLSecondsAfterFinished == nil {
			t.Errorf("%s: got %+v, want a bound of time and tries, and that Jobs are removed", c.Name, job)
		}
	}
}

// Whoever needs less than the whole leaves a component out.
func TestSetup_TheOverlayDoesWithoutSetup(t *testing.T) {
	t.Parallel()
	m := production(t, "  - ../../components/setup\n", "")
	if len(m.Templates) != 0 {
		t.Errorf("got %d templates, want none", len(m.Templates))
	}
	for _, p := range m.Policies {
		if text, err := yaml.Marshal(p); err != nil || strings.Contains(string(text), "setup") {
			t.Errorf("NetworkPolicy %s speaks of setup (%v)", p.Name, err)
		}
	}
}
