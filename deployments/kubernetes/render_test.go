package kubernetes

import (
	"maps"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"changerelay/deployments/internal/reference"
)

// overlays are the environments that can be applied as they are.
var overlays = []string{"overlays/dev", "overlays/production"}

// manifests are what an overlay renders to, by their types.
type manifests struct {
	ConfigMaps      []*corev1.ConfigMap
	Secrets         []*corev1.Secret
	Services        []*corev1.Service
	ServiceAccounts []*corev1.ServiceAccount
	Namespaces      []*corev1.Namespace
	Budgets         []*policyv1.PodDisruptionBudget
	Policies        []*networkingv1.NetworkPolicy
	Autoscalers     []*autoscalingv2.HorizontalPodAutoscaler
	Monitors        []*monitoringv1.PodMonitor
	Rules           []*monitoringv1.PrometheusRule
	Scaled          []*scaledObject
	Templates       []*batchv1.CronJob
	Workloads       []workload
	texts           [][]byte
}

// workload is what makes pods. A CronJob has no selector.
type workload struct {
	kind     string
	meta     metav1.ObjectMeta
	replicas *int32
	selector *metav1.LabelSelector
	pod      corev1.PodTemplateSpec
}

// scaledObject is the part of KEDA's type that is used here
// (https://keda.sh/docs/2.16/reference/scaledobject-spec/).
type scaledObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ScaleTargetRef  autoscalingv2.CrossVersionObjectReference `json:"scaleTargetRef"`
		MinReplicaCount int32                                     `json:"minReplicaCount"`
		MaxReplicaCount int32                                     `json:"maxReplicaCount"`
		PollingInterval int32                                     `json:"pollingInterval"`
		Fallback        struct {
			FailureThreshold int32 `json:"failureThreshold"`
			Replicas         int32 `json:"replicas"`
		} `json:"fallback"`
		Advanced struct {
			HorizontalPodAutoscalerConfig struct {
				Behavior autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior"`
			} `json:"horizontalPodAutoscalerConfig"`
		} `json:"advanced"`
		Triggers []struct {
			Type     string            `json:"type"`
			Metadata map[string]string `json:"metadata"`
		} `json:"triggers"`
	} `json:"spec"`
}

// build renders a directory in memory, with files laid over it.
func build(t *testing.T, dir string, over map[string]string) *manifests {
	t.Helper()
	disk := filesys.MakeFsOnDisk()
	if over != nil {
		disk = copied(t, over)
	}
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = types.LoadRestrictionsRootOnly
	resources, err := krusty.MakeKustomizer(options).Run(disk, dir)
	if err != nil {
		t.Fatalf("render %s: %v", dir, err)
	}
	m := &manifests{}
	for _, r := range resources.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		m.texts = append(m.texts, text)
		m.decode(t, r.GetApiVersion()+" "+r.GetKind(), text)
	}
	return m
}

const productionFile = "kubernetes/overlays/production/kustomization.yaml"

// production renders the production overlay with some of its parts replaced, each old one
// followed by the new.
func production(t *testing.T, replace ...string) *manifests {
	t.Helper()
	text := reference.Read(t, "deployments/"+productionFile)
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(text, replace[i]) {
			t.Fatalf("the production overlay does not contain %q", replace[i])
		}
		text = strings.Replace(text, replace[i], replace[i+1], 1)
	}
	return build(t, "/kubernetes/overlays/production", map[string]string{"/" + productionFile: text})
}

// copied is the directory deployments in memory, with files laid over it.
func copied(t *testing.T, over map[string]string) filesys.FileSystem {
	t.Helper()
	disk, memory := filesys.MakeFsOnDisk(), filesys.MakeFsInMemory()
	for _, root := range []string{"../kubernetes", "../observability"} {
		paths, err := disk.Glob(root + "/*")
		if err != nil {
			t.Fatal(err)
		}
		for len(paths) > 0 {
			path := paths[0]
			paths = paths[1:]
			if disk.IsDir(path) {
				below, err := disk.Glob(path + "/*")
				if err != nil {
					t.Fatal(err)
				}
				paths = append(paths, below...)
				continue
			}
			text, err := disk.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			write(t, memory, "/"+path[len("../"):], string(text))
		}
	}
	for path, text := range over {
		write(t, memory, path, text)
	}
	return memory
}

func write(t *testing.T, to filesys.FileSystem, path, text string) {
	t.Helper()
	if err := to.WriteFile(path, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// decode reads a manifest strictly: a field that the type does not have fails.
func (m *manifests) decode(t *testing.T, kind string, text []byte) {
	t.Helper()
	switch kind {
	case "v1 ConfigMap":
		m.ConfigMaps = append(m.ConfigMaps, strict[corev1.ConfigMap](t, text))
	case "v1 Secret":
		m.Secrets = append(m.Secrets, strict[corev1.Secret](t, text))
	case "v1 Service":
		m.Services = append(m.Services, strict[corev1.Service](t, text))
	case "v1 ServiceAccount":
		m.ServiceAccounts = append(m.ServiceAccounts, strict[corev1.ServiceAccount](t, text))
	case "v1 Namespace":
		m.Namespaces = append(m.Namespaces, strict[corev1.Namespace](t, text))
	case "policy/v1 PodDisruptionBudget":
		m.Budgets = append(m.Budgets, strict[policyv1.PodDisruptionBudget](t, text))
	case "networking.k8s.io/v1 NetworkPolicy":
		m.Policies = append(m.Policies, strict[networkingv1.NetworkPolicy](t, text))
	case "autoscaling/v2 HorizontalPodAutoscaler":
		m.Autoscalers = append(m.Autoscalers, strict[autoscalingv2.HorizontalPodAutoscaler](t, text))
	case "monitoring.coreos.com/v1 PodMonitor":
		m.Monitors = append(m.Monitors, strict[monitoringv1.PodMonitor](t, text))
	case "monitoring.coreos.com/v1 PrometheusRule":
		m.Rules = append(m.Rules, strict[monitoringv1.PrometheusRule](t, text))
	case "keda.sh/v1alpha1 ScaledObject":
		m.Scaled = append(m.Scaled, strict[scaledObject](t, text))
	case "apps/v1 StatefulSet":
		s := strict[appsv1.StatefulSet](t, text)
		m.Workloads = append(m.Workloads, workload{"StatefulSet", s.ObjectMeta, s.Spec.Replicas, s.Spec.Selector, s.Spec.Template})
	case "batch/v1 CronJob":
		c := strict[batchv1.CronJob](t, text)
		m.Templates = append(m.Templates, c)
		m.Workloads = append(m.Workloads, workload{"CronJob", c.ObjectMeta, nil, nil, c.Spec.JobTemplate.Spec.Template})
	case "apps/v1 Deployment":
		d := strict[appsv1.Deployment](t, text)
		m.Workloads = append(m.Workloads, workload{"Deployment", d.ObjectMeta, d.Spec.Replicas, d.Spec.Selector, d.Spec.Template})
	default:
		t.Errorf("%s has no test that reads it:\n%s", kind, text)
	}
}

func strict[T any](t *testing.T, text []byte) *T {
	t.Helper()
	into := new(T)
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Errorf("%v in\n%s", err, text)
	}
	return into
}

// workload returns the one of that name.
func (m *manifests) workload(t *testing.T, name string) workload {
	t.Helper()
	for _, w := range m.Workloads {
		if w.meta.Name == name {
			return w
		}
	}
	t.Fatalf("nothing makes pods called %s", name)
	return workload{}
}

// settings returns what a service is configured with, by variable, and which
// Secrets it reads that are not among the manifests.
func (m *manifests) settings(t *testing.T, w workload) (values map[string]string, missing []string) {
	t.Helper()
	configs, secrets := map[string]map[string]string{}, map[string]map[string]string{}
	for _, c := range m.ConfigMaps {
		configs[c.Name] = c.Data
	}
	for _, s := range m.Secrets {
		secrets[s.Name] = map[string]string{}
		for name, value := range s.Data {
			secrets[s.Name][name] = string(value)
		}
	}
	values = map[string]string{}
	container := w.pod.Spec.Containers[0]
	for _, from := range container.EnvFrom {
		if from.ConfigMapRef != nil {
			if configs[from.ConfigMapRef.Name] == nil {
				t.Errorf("%s reads the ConfigMap %s, which is not there", w.meta.Name, from.ConfigMapRef.Name)
			}
			maps.Copy(values, configs[from.ConfigMapRef.Name])
			continue
		}
		if secrets[from.SecretRef.Name] == nil {
			missing = append(missing, from.SecretRef.Name)
		}
		maps.Copy(values, secrets[from.SecretRef.Name])
	}
	for _, e := range container.Env {
		values[e.Name] = e.Value
	}
	return values, missing
}

// setting returns a setting's value, or its default.
func setting(t *testing.T, service string, values map[string]string, name string) string {
	t.Helper()
	if value := values[name]; value != "" {
		return value
	}
	return reference.Settings(t, service)[name]
}

func each(t *testing.T, check func(t *testing.T, m *manifests)) {
	t.Helper()
	for _, overlay := range overlays {
		t.Run(overlay, func(t *testing.T) {
			t.Parallel()
			check(t, build(t, overlay, nil))
		})
	}
}
