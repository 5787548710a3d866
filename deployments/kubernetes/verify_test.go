package kubernetes

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// withVerify is the production overlay with the comparison.
func withVerify(t *testing.T) (*manifests, workload) {
	t.Helper()
	m := production(t, "  - ../../components/setup\n", "  - ../../components/setup\n  - ../../components/verify\n")
	return m, m.workload(t, "verify")
}

// Each half of the comparison is the service's own image with the service's own settings
// and secrets, and none of the other's.
func TestVerify_EachHalfHasWhatItsServiceHas(t *testing.T) {
	t.Parallel()
	m, verify := withVerify(t)
	for service, container := range map[string]corev1.Container{"publisher": verify.pod.Spec.InitContainers[0], "projector": verify.pod.Spec.Containers[0]} {
		served, _ := pod(t, m.workload(t, service))
		if container.Image != served.Image || !slices.EqualFunc(container.EnvFrom, served.EnvFrom, func(a, b corev1.EnvFromSource) bool {
			return from(a) == from(b)
		}) {
			t.Errorf("%s: got %s with %v, want the %s's image %s with its %v", container.Name, container.Image, container.EnvFrom, service, served.Image, served.EnvFrom)
		}
		for _, path := range mounts(served) {
			if !slices.Contains(mounts(container), path) {
				t.Errorf("%s does not mount %s, as the %s does", container.Name, path, service)
			}
		}
	}
	if out, in := verify.pod.Spec.InitContainers[0].Args, verify.pod.Spec.Containers[0].Args; !slices.Contains(out, "--out=/events/events") || !slices.Contains(in, "--events=/events/events") {
		t.Errorf("got %v and %v, want the one to read what the other prints", out, in)
	}
}

func from(source corev1.EnvFromSource) string {
	if source.SecretRef != nil {
		return "secret " + source.SecretRef.Name
	}
	return "settings " + source.ConfigMapRef.Name
}

func TestVerify_IsBoundedAndWhatTheRestrictedProfileAllows(t *testing.T) {
	t.Parallel()
	m, verify := withVerify(t)
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range evaluator.EvaluatePod(api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}, &verify.pod.ObjectMeta, &verify.pod.Spec) {
		if !result.Allowed {
			t.Errorf("%s: %s", result.ForbiddenReason, result.ForbiddenDetail)
		}
	}
	for _, c := range append(slices.Clone(verify.pod.Spec.InitContainers), verify.pod.Spec.Containers...) {
		if c.SecurityContext.ReadOnlyRootFilesystem == nil || !*c.SecurityContext.ReadOnlyRootFilesystem || c.Resources.Limits.Memory().IsZero() {
			t.Errorf("%s: got %+v, want no way to write to its root file system, and a limit of memory", c.Name, c)
		}
	}
	for _, c := range m.Templates {
		if c.Name != "verify" {
			continue
		}
		if job := c.Spec.JobTemplate.Spec; c.Spec.ConcurrencyPolicy != "Forbid" || job.ActiveDeadlineSeconds == nil || job.TTLSecondsAfterFinished == nil {
			t.Errorf("got %+v, want one at a time, within a time", c.Spec)
		}
	}
	if !slices.ContainsFunc(m.ServiceAccounts, func(a *serviceAccount) bool { return a.Name == verify.pod.Spec.ServiceAccountName }) {
		t.Errorf("there is no account %q", verify.pod.Spec.ServiceAccountName)
	}
}
